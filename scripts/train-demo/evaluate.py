"""Held-out loss in bits per byte, and sampling, with the plain f32 network."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

import model
from data import Data


def document_nats(params: model.Params, config: model.Config, ids: list[int], end_id: int,
                  stride: int) -> float:
    """Nats of a document's tokens given all before them, up to a window.

    The document follows <|endoftext|>.  Windows of n_positions advance by
    `stride`, so a token after the first window has n_positions - stride tokens
    of context or more.
    """
    tokens = torch.tensor([end_id] + ids)
    total, scored, start = 0.0, 0, 0
    while scored < len(ids):
        stop = min(start + config.n_positions, len(ids))
        out = model.logits(params, config, tokens[None, start:stop])[0]
        losses = F.cross_entropy(out, tokens[start + 1:stop + 1], reduction="none")
        total += float(losses[scored - start:].double().sum())
        scored = stop
        start += stride
    return total


@torch.no_grad()
def bits_per_byte(params: model.Params, config: model.Config, data: Data, every: int = 1,
                  stride: int = 256) -> float:
    """Held-out bits per UTF-8 byte, over every `every`-th document."""
    nats, size = 0.0, 0
    for ids, text in list(zip(data.held_ids, data.held_texts))[::every]:
        nats += document_nats(params, config, ids, data.tokenizer.end_id, stride)
        size += len(text.encode())
    return nats / math.log(2) / size


def probabilities(logits: torch.Tensor, ids: torch.Tensor, temperature: float, top_p: float,
                  min_p: float, repetition_penalty: float) -> torch.Tensor:
    """What to draw from, [rows, vocabulary]; not normalised.

    Logits of the ids that a row has already are divided by the penalty where they
    are positive, else multiplied.  The least likely tokens beyond a sum of top_p are
    left out, then those less likely than min_p times the likeliest.
    """
    seen = logits.gather(1, ids)
    seen = torch.where(seen > 0, seen / repetition_penalty, seen * repetition_penalty)
    chances = torch.softmax(logits.scatter(1, ids, seen) / temperature, dim=-1)
    ordered, order = chances.sort(descending=True, stable=True)
    # The first is always kept.
    keep = (ordered.cumsum(1) - ordered < top_p) & (ordered >= min_p * ordered[:, :1])
    return torch.zeros_like(chances).scatter(1, order, ordered * keep)


@torch.no_grad()
def sample(params: model.Params, config: model.Config, prompt: list[int], end_id: int, length: int,
           seeds: list[int], **settings: float) -> list[list[int]]:
    """For each seed, up to `length` ids drawn after <|endoftext|> and `prompt`.

    `settings` are those of `probabilities`.

    A continuation stops before the end token.  There is no cache: all rows are
    computed anew for every token, side by side.
    """
    rngs = [torch.Generator().manual_seed(seed) for seed in seeds]
    rows = torch.tensor([[end_id] + prompt] * len(seeds))
    for _ in range(length):
        out = model.logits(params, config, rows[:, -config.n_positions:])[:, -1]
        chances = probabilities(out, rows, **settings)
        drawn = [int(torch.multinomial(row, 1, generator=rng))
                 for row, rng in zip(chances, rngs)]
        rows = torch.cat([rows, torch.tensor(drawn)[:, None]], dim=1)
    texts = [row[1 + len(prompt):] for row in rows.tolist()]
    return [ids[:ids.index(end_id)] if end_id in ids else ids for ids in texts]
