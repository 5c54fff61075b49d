"""The baseline: an interpolated Kneser-Ney n-gram model over the same tokens.

    python3 scripts/train-demo/ngram.py [--order 5]

Modified Kneser-Ney (three discounts an order, estimated from the counts of
counts): the highest order uses counts, the lower ones the number of different
tokens seen before the n-gram, and the lowest is mixed with the uniform
distribution.
"""

from __future__ import annotations

import argparse
import collections
import math
import pathlib

import data as data_module


class KneserNey:
    """Modified Kneser-Ney over ids, of `order` tokens."""

    def __init__(self, stream: list[int], vocab_size: int, order: int) -> None:
        self.vocab_size, self.order = vocab_size, order
        # counts[n][context][token]: true counts at the highest order, numbers
        # of different predecessors below.
        self.counts: list[dict[tuple[int, ...], dict[int, int]]] = [{} for _ in range(order + 1)]
        grams = collections.Counter(zip(*(stream[i:] for i in range(order))))
        for n in range(order, 0, -1):
            table = self.counts[n]
            lower: collections.Counter[tuple[int, ...]] = collections.Counter()
            for gram, count in grams.items():
                table.setdefault(gram[:-1], {})[gram[-1]] = count
                lower[gram[1:]] += 1
            grams = lower
        self.discounts = [self._discounts(n) for n in range(order + 1)]
        self.masses = [{context: self._masses(n, followers) for context, followers in
                        self.counts[n].items()} for n in range(order + 1)]

    def _discounts(self, n: int) -> tuple[float, float, float]:
        if n == 0:
            return (0.0, 0.0, 0.0)
        seen = collections.Counter(min(c, 5) for f in self.counts[n].values() for c in f.values())
        y = seen[1] / max(1, seen[1] + 2 * seen[2])
        found = [k - (k + 1) * y * seen[k + 1] / seen[k] if seen[k] else 0.5 for k in (1, 2, 3)]
        return tuple(min(max(d, 0.05), k) for k, d in enumerate(found, 1))  # type: ignore

    def _masses(self, n: int, followers: dict[int, int]) -> tuple[int, float]:
        """A context's total count, and the share that goes to the lower order."""
        total = sum(followers.values())
        d = self.discounts[n]
        return total, sum(d[min(c, 3) - 1] for c in followers.values()) / total

    def probability(self, context: tuple[int, ...], token: int) -> float:
        """P(token | context); only the last order - 1 ids of `context` count."""
        p = 1.0 / self.vocab_size
        for n in range(1, self.order + 1):
            key = context[len(context) - n + 1:] if n > 1 else ()
            if len(key) < n - 1:
                break
            followers = self.counts[n].get(key)
            if followers is None:
                break
            total, left = self.masses[n][key]
            count = followers.get(token, 0)
            p = left * p
            if count:
                p += (count - self.discounts[n][min(count, 3) - 1]) / total
        return p


def bits_per_byte(data: data_module.Data, order: int) -> float:
    """Held-out bits per UTF-8 byte of the n-gram model of the training stream."""
    ngram = KneserNey(data.train.tolist(), len(data.tokenizer.tokens), order)
    bits = 0.0
    for ids in data.held_ids:
        context = (data.tokenizer.end_id,)
        for token in ids:
            bits -= math.log2(ngram.probability(context, token))
            context = (*context, token)[-(order - 1):] if order > 1 else ()
    return bits / data.held_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=pathlib.Path, default=data_module.DEFAULT_CORPORA)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--order", type=int, default=5)
    args = parser.parse_args()
    data = data_module.load(args.corpora, args.vocab)
    print(f"{args.order}-gram: {bits_per_byte(data, args.order):.4f} held-out bits per byte")


if __name__ == "__main__":
    main()
