"""Chooses between one and two threads while the machine's load changes.

With both cores free two threads are 1.6 times as fast as one; when another
process has one core, each parallel section waits for the slower half, and one
thread is faster.  The chooser keeps the recent time per step of each count and
tries the slower one again now and then.
"""

from __future__ import annotations

import torch


class ThreadChooser:
    """Sets PyTorch's thread count before each step."""

    def __init__(self, most: int, probe_every: int = 12) -> None:
        self.most, self.probe_every = most, probe_every
        self.times: dict[int, float] = {}
        self.current = most
        self.count = 0

    def begin(self) -> None:
        """Call before a step."""
        if self.most == 1:
            torch.set_num_threads(1)
            return
        if len(self.times) == 2 and self.count % self.probe_every:
            self.current = min(self.times, key=lambda n: self.times[n])
        else:
            self.current = self.most + 1 - self.current if self.times else self.most
        torch.set_num_threads(self.current)
        self.count += 1

    def end(self, seconds: float) -> None:
        """Call after a step, with the time it took."""
        old = self.times.get(self.current, seconds)
        self.times[self.current] = 0.5 * old + 0.5 * seconds
