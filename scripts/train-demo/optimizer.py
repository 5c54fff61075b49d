"""The optimizers: Muon for the hidden matrices, AdamW for the rest.

Muon replaces the momentum of a matrix by the nearest orthogonal one, found
with a few Newton-Schulz steps, which makes all directions of the matrix learn
at the same pace.
"""

from __future__ import annotations

import torch

from model import Params

HIDDEN = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def orthogonalize(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Approximately U V^T of the matrices [N, rows <= columns] = U S V^T, in bf16.

    The quintic's coefficients are those published with Muon (K. Jordan, 2024).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices.to(torch.bfloat16)
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).to(torch.bfloat16)
    for _ in range(steps):
        gram = torch.bmm(x, x.transpose(1, 2))
        poly = b * gram + c * torch.bmm(gram, gram)
        x = a * x + torch.bmm(poly, x)
    return x.float()


class Optimizer:
    """One step over all parameters, given the fraction `scale` of the peak rate."""

    def __init__(self, params: Params, lr: float, hidden_lr: float, decay: float,
                 betas: tuple[float, float] = (0.9, 0.98), momentum: float = 0.95,
                 use_muon: bool = True) -> None:
        self.params = params
        self.hidden = [n for n in params if n.endswith(HIDDEN)] if use_muon else []
        self.rest = [n for n in params if n not in set(self.hidden)]
        self.lr, self.hidden_lr, self.decay = lr, hidden_lr, decay
        self.betas, self.momentum = betas, momentum
        self.count = 0
        self.first = {n: torch.zeros_like(p) for n, p in params.items()}
        self.second = {n: torch.zeros_like(params[n]) for n in self.rest}

    def state(self) -> dict:
        return {"count": self.count, "first": self.first, "second": self.second}

    def load_state(self, state: dict) -> None:
        self.count, self.first, self.second = state["count"], state["first"], state["second"]

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """Updates the parameters from their .grad."""
        self.count += 1
        norm = torch.stack([p.grad.norm() for p in self.params.values()]).norm()
        clip = min(1.0, 1.0 / (float(norm) + 1e-6))
        self._adam(scale, clip)
        self._muon(scale)
        for p in self.params.values():
            p.grad = None

    def _adam(self, scale: float, clip: float) -> None:
        b1, b2 = self.betas
        rate = self.lr * scale
        for name in self.rest:
            p, m, v = self.params[name], self.first[name], self.second[name]
            g = p.grad * clip
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            if p.dim() == 2:
                p.mul_(1 - rate * self.decay)
            root = (v / (1 - b2 ** self.count)).sqrt_().add_(1e-8)
            p.addcdiv_(m, root, value=-rate / (1 - b1 ** self.count))

    def _muon(self, scale: float) -> None:
        groups: dict[tuple[int, int], list[tuple[torch.Tensor, torch.Tensor, bool]]] = {}
        for name in self.hidden:
            p, m = self.params[name], self.first[name]
            m.lerp_(p.grad, 1 - self.momentum)
            update = p.grad.lerp(m, self.momentum)
            # Queries, keys and values are three matrices stored side by side.
            width = p.shape[0] if name.endswith("c_attn.weight") else p.shape[1]
            for part, target in zip(update.split(width, 1), p.split(width, 1)):
                flip = part.shape[0] > part.shape[1]
                part = part.t() if flip else part
                groups.setdefault(tuple(part.shape), []).append((target, part, flip))
        rate = self.hidden_lr * scale
        for (rows, columns), members in groups.items():
            updates = orthogonalize(torch.stack([part for _, part, _ in members]))
            # The entries of an orthogonal matrix shrink with its size; this
            # brings them to the size of AdamW's updates.
            size = 0.2 * max(rows, columns) ** 0.5
            for (target, _, flip), update in zip(members, updates):
                target.mul_(1 - rate * self.decay)
                target.sub_(update.t() if flip else update, alpha=rate * size)
