"""Trains the demo model; run again to resume from the last checkpoint.

    python3 scripts/train-demo/train.py --run long --minutes 90

Everything is written to build/train-demo/<run>/: checkpoint.pt, log.csv.  The
learning rate follows the share of the time (or of the steps, with --steps) that
is used up, so the decay ends on time however busy the machine is.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import pathlib
import time

import torch

import data as data_module
import evaluate
import export
import model
from optimizer import Optimizer
from threads import ThreadChooser

FIELDS = ["step", "seconds", "epochs", "rate", "train_nats", "held_bits_per_byte"]


def rate_scale(progress: float, warmup: float = 0.02) -> float:
    """Fraction of the peak learning rate: a short rise, then linearly to 0."""
    return min(progress / warmup + 0.02, 1.0, max(0.0, (1 - progress) / (1 - warmup)))


class Run:
    """State of a training run: parameters, their average, optimizer, clock."""

    def __init__(self, args: argparse.Namespace, data: data_module.Data,
                 folder: pathlib.Path) -> None:
        self.args, self.data, self.folder = args, data, folder
        self.config = model.Config(len(data.tokenizer.tokens), 512, args.embd, args.layers,
                                   args.heads)
        self.params = model.init_params(self.config, args.seed)
        for p in self.params.values():
            p.requires_grad_()
        self.average = {n: p.detach().clone() for n, p in self.params.items()}
        self.optimizer = Optimizer(self.params, args.lr, args.hidden_lr, args.decay,
                                   use_muon=not args.adam)
        self.step = 0
        self.seconds = 0.0  # of training so far, over all sessions
        self.epochs = 0.0

    def progress(self) -> float:
        """Share of the budget that is used up, 0..1."""
        if self.args.steps:
            return self.step / self.args.steps
        return self.seconds / (60 * self.args.minutes)

    def train_step(self) -> float:
        """One optimizer step; returns the mean loss in nats per token."""
        args = self.args
        long_windows = self.progress() >= args.long_from
        window = self.config.n_positions if long_windows else self.config.n_positions // 2
        # Which tokens come next follows from self.epochs alone, so a resumed
        # run goes on exactly where it stopped.
        count = args.batch_tokens // window
        per_epoch = len(self.data.train) // window // count
        epoch, index = int(self.epochs), int((self.epochs % 1) * per_epoch + 0.5)
        if index >= per_epoch:
            epoch, index = epoch + 1, 0
        starts = data_module.epoch_starts(len(self.data.train), window, epoch, args.seed)
        inputs, targets = data_module.batch(self.data.train,
                                            starts[index * count:(index + 1) * count], window)
        # Short windows sit at a random place, so that all positions are trained.
        shift = self.step * 7919 % (self.config.n_positions - window + 1)
        dropout = args.dropout if self.progress() < args.dropout_until else 0.0
        loss = model.train_loss(self.params, self.config, inputs, targets, shift, dropout,
                                args.seed * 1000003 + self.step)
        if not math.isfinite(float(loss)):  # before it can reach a checkpoint
            raise FloatingPointError(f"the loss is {float(loss)} at step {self.step}")
        loss.backward()
        scale = rate_scale(self.progress())
        self.optimizer.step(scale)
        keep = min(args.ema, (self.step + 1) / (self.step + 10))
        with torch.no_grad():
            for name, p in self.params.items():
                self.average[name].lerp_(p, 1 - keep)
        self.step += 1
        self.epochs = epoch + (index + 1) / per_epoch
        return float(loss)

    def save(self) -> None:
        """Writes the checkpoint, whole or not at all."""
        path = self.folder / "checkpoint.pt"
        torch.save({"step": self.step, "seconds": self.seconds, "epochs": self.epochs,
                    "params": {n: p.detach() for n, p in self.params.items()},
                    "average": self.average, "optimizer": self.optimizer.state(),
                    "config": self.config.to_dict(), "args": vars(self.args)}, str(path) + ".new")
        os.replace(str(path) + ".new", path)

    def load_weights(self, path: pathlib.Path) -> dict:
        """Takes weights, average and optimizer from a checkpoint; returns all of it."""
        state = torch.load(path)
        if state["config"] != self.config.to_dict():
            raise SystemExit(f"{path} is of another model: {state['config']}")
        with torch.no_grad():
            for name, p in self.params.items():
                p.copy_(state["params"][name])
        self.average = state["average"]
        self.optimizer.load_state(state["optimizer"])
        return state

    def resume(self) -> bool:
        """Reads the checkpoint, if there is one, or begins from that of --init."""
        path = self.folder / "checkpoint.pt"
        if path.is_file():
            state = self.load_weights(path)
            self.step, self.seconds, self.epochs = state["step"], state["seconds"], state["epochs"]
            return True
        if self.args.weights:
            self.load_exported(self.args.weights)
        elif self.args.init:
            self.load_weights(self.folder.parent / self.args.init / "checkpoint.pt")
        return False

    def load_exported(self, folder: pathlib.Path) -> None:
        """Takes the weights of a model folder, without average and optimizer, which it lacks."""
        params, config = export.load_model(folder)
        if config != self.config:
            raise SystemExit(f"{folder} holds another model: {config}")
        with torch.no_grad():
            for name, p in self.params.items():
                p.copy_(params[name])
                self.average[name].copy_(params[name])

    def train(self, stop_at_step: int | None = None) -> None:
        """Trains until the budget is used up (or up to a step, for the tests)."""
        log = self.folder / "log.csv"
        rows = []
        if log.is_file():  # keep what the checkpoint knows of
            with log.open(newline="") as file:
                rows = [r for r in csv.DictReader(file) if int(r["step"]) <= self.step]
        losses: list[float] = []
        chooser = ThreadChooser(self.args.threads)
        last_save = last_eval = self.seconds
        while self.progress() < 1 and self.step != stop_at_step:
            chooser.begin()
            begin = time.monotonic()
            losses.append(self.train_step())
            took = time.monotonic() - begin
            chooser.end(took)
            self.seconds += took
            done = self.progress() >= 1
            if done or (self.args.eval_seconds and
                        self.seconds - last_eval >= self.args.eval_seconds):
                begin = time.monotonic()
                bits = evaluate.bits_per_byte(self.average, self.config, self.data,
                                              every=1 if done else 4)
                rows.append(dict(zip(FIELDS, [
                    self.step, round(self.seconds), round(self.epochs, 3),
                    round(rate_scale(self.progress()), 4),
                    round(sum(losses) / len(losses), 4), round(bits, 4)])))
                with log.open("w", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    writer.writeheader()
                    writer.writerows(rows)
                pace = len(losses) * self.args.batch_tokens / (self.seconds - last_eval + 1e-9)
                print(*rows[-1].values(), f"{pace:.0f} tokens/s, {chooser.times}", flush=True)
                losses = []
                # Evaluation counts as time used, or the end would come late.
                self.seconds += time.monotonic() - begin
                last_eval = self.seconds
            if done or self.seconds - last_save >= 180:
                self.save()
                last_save = self.seconds


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Command-line options; the defaults are those of the shipped model."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--corpora", type=pathlib.Path, default=data_module.DEFAULT_CORPORA)
    add("--run", default="long", help="folder below build/train-demo")
    add("--init", default="", help="run whose weights a new run begins with")
    add("--weights", type=pathlib.Path, help="its exported model, where its checkpoint is gone")
    add("--minutes", type=float, default=61.0, help="time budget, over all sessions")
    add("--steps", type=int, default=0, help="budget in steps, instead of --minutes")
    add("--vocab", type=int, default=4096)
    add("--embd", type=int, default=320)
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=5)
    add("--batch-tokens", type=int, default=6144)
    add("--lr", type=float, default=3e-3, help="AdamW's peak rate")
    add("--hidden-lr", type=float, default=3e-3, help="Muon's peak rate")
    add("--adam", action="store_true", help="AdamW for the hidden matrices too")
    add("--decay", type=float, default=0.1, help="weight decay")
    add("--dropout", type=float, default=0.1)
    add("--dropout-until", type=float, default=0.64, help="progress where dropout ends")
    add("--ema", type=float, default=0.995, help="share of the average kept in a step")
    add("--long-from", type=float, default=0.75, help="progress where 512-token windows begin")
    add("--eval-seconds", type=float, default=240.0)
    add("--threads", type=int, default=2, choices=(1, 2))
    add("--seed", type=int, default=1)
    return parser.parse_args(argv)


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    data = data_module.load(args.corpora, args.vocab)
    folder = data_module.BUILD / args.run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "args.json").write_text(json.dumps(vars(args), default=str, indent=1) + "\n")
    run = Run(args, data, folder)
    print(f"{model.count(run.params)} parameters, {len(data.train)} training tokens, "
          f"{data.held_bytes()} held-out bytes, {'resumed' if run.resume() else 'new'} run",
          flush=True)
    run.train()
    raw = evaluate.bits_per_byte({n: p.detach() for n, p in run.params.items()}, run.config, data)
    print(f"held-out bits per byte without averaging: {raw:.4f}")


if __name__ == "__main__":
    main()
