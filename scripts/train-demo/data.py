"""Token streams for training and held-out documents, cached in the build folder."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

import numpy as np
import torch

import bpe
import corpus
from ops import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_CORPORA = ROOT.parent / "shared" / "corpora"


@dataclass
class Data:
    """A tokenizer, the training stream [N] and the held-out documents."""

    tokenizer: bpe.Tokenizer
    train: np.ndarray  # int64 ids; <|endoftext|> before every document
    held_ids: list[list[int]]
    held_texts: list[str]
    train_texts: list[str]

    def held_bytes(self) -> int:
        """UTF-8 bytes of all held-out documents."""
        return sum(len(text.encode()) for text in self.held_texts)


def load(corpora: pathlib.Path, vocab_size: int) -> Data:
    """Reads, splits and tokenizes the corpus; learns the vocabulary on the
    training part only (kept in build/train-demo/vocab-<size>/)."""
    train_docs, held_docs = corpus.split_held_out(corpus.read_corpus(corpora))
    train_texts = ["\n\n".join(document) for document in train_docs]
    held_texts = ["\n\n".join(document) for document in held_docs]
    folder = BUILD / f"vocab-{vocab_size}"
    if not (folder / "merges.txt").is_file():
        bpe.Tokenizer(bpe.train("\n\n".join(train_texts), vocab_size)).save(folder)
    tokenizer = bpe.Tokenizer.load(folder)
    stream: list[int] = []
    for text in train_texts:
        stream.append(tokenizer.end_id)
        stream.extend(tokenizer.encode(text))
    return Data(tokenizer, np.asarray(stream, dtype=np.int64),
                [tokenizer.encode(text) for text in held_texts], held_texts, train_texts)


def epoch_starts(length: int, window: int, epoch: int, seed: int) -> np.ndarray:
    """Where the windows of an epoch start: a random phase, then a shuffle.

    The stream is a ring, so every token is seen once an epoch; the phase moves
    the cuts, so that every epoch sees the tokens at other places.
    """
    rng = np.random.default_rng([seed, epoch])
    starts = np.arange(length // window) * window + rng.integers(length)
    return rng.permutation(starts % length)


def batch(stream: np.ndarray, starts: np.ndarray, window: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets [len(starts), window] of the windows at `starts`."""
    index = (starts[:, None] + np.arange(window + 1)) % len(stream)
    tokens = stream[index]
    return (torch.from_numpy(np.ascontiguousarray(tokens[:, :-1])),
            torch.from_numpy(np.ascontiguousarray(tokens[:, 1:])))
