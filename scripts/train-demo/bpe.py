"""Byte-level BPE in GPT-2's form: training, encoding, decoding and files.

Text is cut into pre-tokens by GPT-2's pattern; the bytes of each are written
in a printable alphabet of 256 characters; merges join neighbours, the earliest
learned first.  Ids: the 256 bytes, then the merges, then <|endoftext|>.
"""

from __future__ import annotations

import collections
import heapq
import json
import pathlib

import regex

END_OF_TEXT = "<|endoftext|>"
PRE_TOKEN = regex.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def byte_alphabet() -> list[str]:
    """The character that stands for each byte value.

    Printable Latin-1 characters stand for themselves; the 68 others (controls,
    the space, the soft hyphen) take the code points from 256 on, in order.
    """
    shift = 256
    table: list[str] = []
    for value in range(256):
        if 33 <= value <= 126 or 161 <= value <= 172 or value >= 174:
            table.append(chr(value))
        else:
            table.append(chr(shift))
            shift += 1
    return table


_TO_CHAR = byte_alphabet()
_TO_BYTE = {char: value for value, char in enumerate(_TO_CHAR)}


def to_alphabet(text: str) -> str:
    """The UTF-8 bytes of `text`, one alphabet character each."""
    return "".join(_TO_CHAR[value] for value in text.encode("utf-8"))


def base_vocabulary() -> list[str]:
    """The 256 single-byte tokens in GPT-2's order: printable ones first."""
    return sorted(_TO_CHAR, key=lambda char: (ord(char) >= 256, ord(char)))


def train(text: str, vocab_size: int) -> list[tuple[str, str]]:
    """Learns merges for a vocabulary of `vocab_size` entries, the special one
    included.

    Keeps the count of every pair and the words it occurs in, so that a merge
    only visits the words it changes.  Ties go to the smaller pair, so that the
    result does not depend on dictionary order.
    """
    counts = collections.Counter(to_alphabet(piece) for piece in PRE_TOKEN.findall(text))
    words = [list(word) for word in counts]
    freqs = list(counts.values())
    pairs: collections.Counter[tuple[str, str]] = collections.Counter()
    places: dict[tuple[str, str], set[int]] = collections.defaultdict(set)
    for index, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += freqs[index]
            places[pair].add(index)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    merges: list[tuple[str, str]] = []
    while len(merges) < vocab_size - 257 and heap:
        negative, pair = heapq.heappop(heap)
        if pairs[pair] != -negative:  # an entry from before the count changed
            continue
        if -negative < 2:
            break
        merges.append(pair)
        changed: set[tuple[str, str]] = set()
        for index in places.pop(pair):
            old = words[index]
            new = _merge(old, pair)
            for old_pair in zip(old, old[1:]):
                pairs[old_pair] -= freqs[index]
                changed.add(old_pair)
            for new_pair in zip(new, new[1:]):
                pairs[new_pair] += freqs[index]
                places[new_pair].add(index)
                changed.add(new_pair)
            words[index] = new
        for other in changed:
            if pairs[other] > 0:
                heapq.heappush(heap, (-pairs[other], other))
    return merges


def _merge(word: list[str], pair: tuple[str, str]) -> list[str]:
    """`word` with every occurrence of `pair`, from the left, joined."""
    out: list[str] = []
    i = 0
    while i < len(word):
        if i + 1 < len(word) and word[i] == pair[0] and word[i + 1] == pair[1]:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


class Tokenizer:
    """Encodes and decodes with a list of merges."""

    def __init__(self, merges: list[tuple[str, str]]) -> None:
        self.merges = merges
        self.tokens = base_vocabulary() + [a + b for a, b in merges] + [END_OF_TEXT]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.end_id = len(self.tokens) - 1
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; <|endoftext|> is not looked for."""
        out: list[int] = []
        for piece in PRE_TOKEN.findall(text):
            ids = self._cache.get(piece)
            if ids is None:
                ids = self._cache[piece] = self._encode_piece(piece)
            out.extend(ids)
        return out

    def _encode_piece(self, piece: str) -> list[int]:
        word = list(to_alphabet(piece))
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda p: self.ranks.get(p, len(self.ranks)))
            if best not in self.ranks:
                break
            word = _merge(word, best)
        return [self.ids[token] for token in word]

    def decode(self, ids: list[int]) -> str:
        """Text of `ids`; the special token is left out."""
        chars = "".join(self.tokens[i] for i in ids if i != self.end_id)
        return bytes(_TO_BYTE[char] for char in chars).decode("utf-8", errors="replace")

    def save(self, folder: pathlib.Path) -> None:
        """Writes vocab.json, merges.txt and tokenizer.json."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{a} {b}" for a, b in self.merges]
        _dump(folder / "vocab.json", self.ids)
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                      "use_regex": True}
        _dump(folder / "tokenizer.json", {
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": self.end_id, "content": END_OF_TEXT, "single_word": False,
                              "lstrip": False, "rstrip": False, "normalized": False,
                              "special": True}],
            "normalizer": None, "pre_tokenizer": byte_level,
            "post_processor": {**byte_level, "trim_offsets": False}, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": "", "end_of_word_suffix": "",
                      "fuse_unk": False, "byte_fallback": False,
                      "vocab": self.ids, "merges": lines}})
        _dump(folder / "tokenizer_config.json", {
            "tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False,
            "bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT, "unk_token": END_OF_TEXT,
            "model_max_length": 512})

    @staticmethod
    def load(folder: pathlib.Path) -> "Tokenizer":
        """Reads merges.txt."""
        lines = (folder / "merges.txt").read_text("utf-8").split("\n")[1:]
        return Tokenizer([(a, b) for a, b in (line.split(" ") for line in lines if line)])


def _dump(path: pathlib.Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")
