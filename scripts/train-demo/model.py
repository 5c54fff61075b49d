"""GPT-2: parameters under their Hugging Face names, and two forward passes.

Parameters are a dict of f32 tensors; linear weights are [in, out] as GPT-2
stores them, and the output head is the token embedding, transposed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F

import ops

Params = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Config:
    """Sizes of the network."""

    vocab_size: int = 4096
    n_positions: int = 512
    n_embd: int = 320
    n_layer: int = 4
    n_head: int = 5

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def init_params(config: Config, seed: int) -> Params:
    """Fresh parameters: normal(0, 0.02), projections into the residual stream
    smaller by the root of their number, gains 1 and biases 0."""
    rng = torch.Generator().manual_seed(seed)
    D, L = config.n_embd, config.n_layer

    def normal(*shape: int, std: float = 0.02) -> torch.Tensor:
        return torch.randn(*shape, generator=rng) * std

    params: Params = {"wte.weight": normal(config.vocab_size, D),
                      "wpe.weight": normal(config.n_positions, D, std=0.01)}
    small = 0.02 / math.sqrt(2 * L)
    for i in range(L):
        for name, shape, std in (("attn.c_attn", (D, 3 * D), 0.02),
                                 ("attn.c_proj", (D, D), small),
                                 ("mlp.c_fc", (D, 4 * D), 0.02),
                                 ("mlp.c_proj", (4 * D, D), small)):
            params[f"h.{i}.{name}.weight"] = normal(*shape, std=std)
            params[f"h.{i}.{name}.bias"] = torch.zeros(shape[1])
        for name in ("ln_1", "ln_2"):
            params[f"h.{i}.{name}.weight"] = torch.ones(D)
            params[f"h.{i}.{name}.bias"] = torch.zeros(D)
    params["ln_f.weight"], params["ln_f.bias"] = torch.ones(D), torch.zeros(D)
    return params


def count(params: Params) -> int:
    """Number of parameters."""
    return sum(tensor.numel() for tensor in params.values())


def train_loss(params: Params, config: Config, inputs: torch.Tensor, targets: torch.Tensor,
               first_position: int, dropout: float, seed: int) -> torch.Tensor:
    """Mean nats per token of inputs/targets [B, T], with the fused bf16 ops.

    The window's positions are first_position .. first_position + T - 1.
    Dropout acts on the embeddings and on what each half-block adds.
    """
    B, T = inputs.shape
    token = F.embedding(inputs.reshape(-1), params["wte.weight"])
    place = params["wpe.weight"][first_position:first_position + T].repeat(B, 1)
    x = ops.DropAdd.apply(torch.zeros_like(token), (token + place).to(torch.bfloat16),
                          dropout, seed * 1009)
    for i in range(config.n_layer):
        p = f"h.{i}."
        y = ops.LayerNorm.apply(x, params[p + "ln_1.weight"], params[p + "ln_1.bias"])
        y = ops.Linear.apply(y, params[p + "attn.c_attn.weight"], params[p + "attn.c_attn.bias"])
        y = ops.Attention.apply(y, B, T, config.n_head)
        y = ops.Linear.apply(y, params[p + "attn.c_proj.weight"], params[p + "attn.c_proj.bias"])
        x = ops.DropAdd.apply(x, y, dropout, seed * 1009 + 2 * i + 1)
        y = ops.LayerNorm.apply(x, params[p + "ln_2.weight"], params[p + "ln_2.bias"])
        y = ops.Linear.apply(y, params[p + "mlp.c_fc.weight"], params[p + "mlp.c_fc.bias"])
        y = ops.Gelu.apply(y)
        y = ops.Linear.apply(y, params[p + "mlp.c_proj.weight"], params[p + "mlp.c_proj.bias"])
        x = ops.DropAdd.apply(x, y, dropout, seed * 1009 + 2 * i + 2)
    x = ops.LayerNorm.apply(x, params["ln_f.weight"], params["ln_f.bias"])
    return ops.HeadLoss.apply(x, params["wte.weight"], targets.reshape(-1))


def logits(params: Params, config: Config, inputs: torch.Tensor) -> torch.Tensor:
    """Logits [B, T, V] in f32: the plain definition of the network."""
    B, T = inputs.shape
    H, D = config.n_head, config.n_embd
    x = params["wte.weight"][inputs] + params["wpe.weight"][:T]
    mask = torch.full((T, T), float("-inf")).triu(1)

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (D,), params[name + ".weight"], params[name + ".bias"], 1e-5)

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ params[name + ".weight"] + params[name + ".bias"]

    for i in range(config.n_layer):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(D, dim=2)
        q, k, v = (t.view(B, T, H, D // H).transpose(1, 2) for t in (q, k, v))
        weights = torch.softmax(q @ k.transpose(2, 3) * (D // H) ** -0.5 + mask, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(B, T, D)
        x = x + linear(y, f"h.{i}.attn.c_proj")
        y = F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(y, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ params["wte.weight"].t()
