"""Writes the model card: results, loss curve and unselected samples.

    python3 scripts/train-demo/card.py --run longer

Measures what it prints: the bits per byte are those of the exported F16 weights
in models/fairy-tale, computed again, and the samples are those of seeds 1-10.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import pathlib
from typing import NamedTuple

import torch

import chart
import data as data_module
import evaluate
import export
import model
import ngram

PROMPT = "Once upon a time"
BOOKS = {
    "alice-s-adventures-in-wonderland": "Lewis Carroll, *Alice's Adventures in Wonderland*",
    "andersen-s-fairy-tales": "Hans Christian Andersen, *Andersen's Fairy Tales*",
    "black-beauty": "Anna Sewell, *Black Beauty*",
    "english-fairy-tales": "Joseph Jacobs, *English Fairy Tales*",
    "grimms": "The Brothers Grimm, *Fairy Tales*",
    "heidi": "Johanna Spyri, *Heidi*",
    "peter-pan": "J. M. Barrie, *Peter Pan*",
    "the-jungle-book": "Rudyard Kipling, *The Jungle Book*",
    "the-secret-garden": "Frances Hodgson Burnett, *The Secret Garden*",
    "the-wind-in-the-willows": "Kenneth Grahame, *The Wind in the Willows*",
    "the-wonderful-wizard-of-oz": "L. Frank Baum, *The Wonderful Wizard of Oz*",
}
LANG = "Andrew Lang (editor), the *Blue, Brown, Crimson, Green, Orange, Pink, Red, Violet* and " \
       "*Yellow Fairy Books*"


def samples(params: model.Params, config: model.Config, data: data_module.Data,
            length: int) -> list[str]:
    """The continuations of PROMPT with seeds 1-10, at the folder's settings."""
    drawn = evaluate.sample(params, config, data.tokenizer.encode(PROMPT), data.tokenizer.end_id,
                            length, seeds=list(range(1, 11)), **export.SAMPLING)
    out = []
    for ids in drawn:
        ended = " *(the model ended the story)*" if len(ids) < length else ""
        text = (PROMPT + data.tokenizer.decode(ids)).strip()
        out.append("> " + text.replace("\n", "\n> ") + ended)
    return out


def quote(texts: list[str]) -> str:
    return "\n\n".join(f"**Seed {seed}**\n\n{text}" for seed, text in enumerate(texts, 1))


class Run(NamedTuple):
    """A training run: train.py's options, and what its log says of the curve and of the end."""

    args: dict
    curve: list[dict[str, str]]  # of every fourth held-out document
    last: dict[str, str]         # of all of them


def runs_up_to(name: str) -> list[Run]:
    """A run and those that it went on from (--init), the first one first."""
    args = json.loads((export.RECORDS / f"{name}.json").read_text())
    with (export.RECORDS / f"{name}.csv").open(newline="") as file:
        *curve, last = csv.DictReader(file)
    before = runs_up_to(args["init"]) if args["init"] else []
    return [*before, Run(args, curve, last)]


def method(runs: list[Run]) -> str:
    """A table of the runs."""
    rows = ["| Steps | Epochs | Minutes | Peak rates, Muon and AdamW | Dropout, until this part of the "
            "time | Begins with |", "|---|---|---|---|---|---|"]
    for number, (args, _, last) in enumerate(runs):
        begin = "random weights" if number == 0 else "the weights of the run above"
        rows.append(f"| {int(last['step']):,} | {float(last['epochs']):.1f} | "
                    f"{float(last['seconds']) / 60:.0f} | {args['hidden_lr']}, {args['lr']} | "
                    f"{args['dropout']}, {float(args['dropout_until']):.0%} | {begin} |")
    return "\n".join(rows)


def curve_of(runs: list[Run]) -> tuple[list[float], list[float], list[float]]:
    """Epochs over all runs, held-out bits per byte, and training nats per token."""
    epochs, held, trained, before = [], [], [], 0.0
    for run in runs:
        epochs += [before + float(row["epochs"]) for row in run.curve]
        held += [float(row["held_bits_per_byte"]) for row in run.curve]
        trained += [float(row["train_nats"]) for row in run.curve]
        before += float(run.last["epochs"])
    return epochs, held, trained


def card(runs: list[Run], data: data_module.Data, params: model.Params, config: model.Config,
         size: int, baseline: float) -> str:
    """The text of the card."""
    bits = evaluate.bits_per_byte(params, config, data)
    run = runs[-1].args
    per_token = data.held_bytes() / sum(len(ids) for ids in data.held_ids)
    ngram_perplexity = 2 ** (baseline * per_token)
    books = "\n".join(f"- {BOOKS[book]}" for book in sorted(BOOKS))
    return f"""---
language: en
license: mit
library_name: transformers
pipeline_tag: text-generation
tags: [gpt2, fairy-tales, small]
---

# fairy-tale: a small GPT-2 that tells fairy tales

The model that this project runs when none is given: {model.count(params):,} parameters, trained
from scratch on public-domain fairy tales and children's books by `scripts/train-demo/`. It is a
plain GPT-2 in the Hugging Face layout, stored F16 ({size / 1e6:.1f} MB).

| | |
|---|---|
| Held-out bits per byte | **{bits:.3f}** |
| 5-gram baseline, same tokens and split | {baseline:.3f} |
| Held-out perplexity per token | {2 ** (bits * per_token):.1f} (5-gram: {ngram_perplexity:.1f}) |
| Layers, width, heads | {config.n_layer}, {config.n_embd}, {config.n_head} |
| Context | {config.n_positions} tokens |
| Vocabulary | {config.vocab_size:,} byte-level BPE entries, `<|endoftext|>` the last |

Bits per byte are the model's log-loss over the UTF-8 bytes of the *normalised* held-out text
(see Data), measured with the F16 weights of this folder: every held-out document follows
`<|endoftext|>`, windows of {config.n_positions} tokens advance by 256, and each token is scored
once, with 256 tokens of context or more when the document has them. The baseline is an
interpolated modified Kneser-Ney model of the training tokens.

## Data

{len(data.train):,} training tokens ({sum(len(t.encode()) for t in data.train_texts) / 1e6:.2f} MB)
and {data.held_bytes() / 1e6:.2f} MB held out, from Project Gutenberg's editions of

{books}
- {LANG}

Front matter, contents, notes, titles and chapter headings are left out; wrapped lines are joined
(verse keeps its lines); quotation marks are straight, speech is in double quotes in all books, and
marks of italics are gone. A story or chapter is one document, its paragraphs separated by blank
lines. Held out are {len(data.held_texts)} runs of consecutive paragraphs of about 6 KB, at random
places in every book; no held-out paragraph occurs in training, though other parts of the same
story do.

## Method

On two shared CPU cores, in steps of {int(run["batch_tokens"]):,} tokens:

{method(runs)}

Muon for the hidden matrices, AdamW for the rest, weight decay {run["decay"]}, dropout on the
embeddings and on each half-block's output; a short warm-up, then a linear decay to 0. Windows of
256 tokens at random positions until {float(run["long_from"]):.0%} of a run's time, then of 512.
The weights are the exponential average of the last ones (factor {run["ema"]} a step), which the log
and the curve follow, too.
Products in bf16, sums and weights in f32. `scripts/train-demo/README.md` has the commands and what
else was tried.

![Bits per byte over epochs](loss.svg)

The curve's held-out values, measured during the run, are those of every fourth document, which are
a little easier than the whole; the training values include dropout while it lasted.

## Samples

Ten unselected continuations of "{PROMPT}": seeds 1 to 10, up to 150 tokens, temperature
{export.SAMPLING["temperature"]}, top-p {export.SAMPLING["top_p"]}, min-p {export.SAMPLING["min_p"]} and a repetition penalty of {export.SAMPLING["repetition_penalty"]}:
the settings of `generation_config.json`.

{quote(samples(params, config, data, 150))}

## Limits

- It writes in the manner of old fairy tales and knows nothing else: no questions, no
  instructions, no facts, no other language.
- It is small and was trained for an hour and a half: by our strict reading 35 of the 52 whole
  sentences above are grammatical (29 of 53 before the second run), long ones less often, and plots
  never hold. People change name, sex and purpose within a sentence. Without the repetition penalty
  words such as "man" or "son" come back all the time.
- The books are of their time. What the model writes can repeat their violence and their
  stereotypes of peoples, women and the poor.
- It can repeat short passages of the books word for word.

## Licence and attribution

The weights are under the licence of this project (MIT). The texts are in the public domain in the
United States; the editions are Project Gutenberg's (www.gutenberg.org), whose volunteers' work is
gratefully acknowledged. Project Gutenberg is not affiliated with this project, and the texts
themselves are not in this repository.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="longer")
    parser.add_argument("--corpora", type=pathlib.Path, default=data_module.DEFAULT_CORPORA)
    parser.add_argument("--model", type=pathlib.Path,
                        default=data_module.ROOT / "models/fairy-tale")
    args = parser.parse_args()
    torch.set_num_threads(2)
    params, config = export.load_model(args.model)
    data = data_module.load(args.corpora, config.vocab_size)
    runs = runs_up_to(args.run)
    baseline = ngram.bits_per_byte(data, 5)
    to_bits = len(data.train) / math.log(2) / sum(len(t.encode()) for t in data.train_texts)
    epochs, held, trained = curve_of(runs)
    (args.model / "loss.svg").write_text(
        chart.loss_curve(epochs, held, [nats * to_bits for nats in trained], baseline))
    text = card(runs, data, params, config, (args.model / "model.safetensors").stat().st_size,
                baseline)
    (args.model / "README.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
