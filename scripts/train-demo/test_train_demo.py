"""Self-checks of the training scripts; they need no corpus.

    python3 -m unittest discover -s scripts/train-demo
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bpe
import corpus
import data
import evaluate
import export
import model
import ngram
import ops
import train

TEXT = ("Once upon a time there was a king who had a daughter.\n\n\"Where is she?\" asked the "
        "king; but nobody had seen the king's daughter, not even the king's 3 sons. ") * 20
CONFIG = model.Config(vocab_size=300, n_positions=32, n_embd=32, n_layer=2, n_head=2)


def small_run(folder: pathlib.Path) -> train.Run:
    """A run of a tiny model on TEXT, 8 steps long."""
    tokenizer = bpe.Tokenizer(bpe.train(TEXT, 300))
    ids = [tokenizer.end_id] + tokenizer.encode(TEXT)
    args = train.parse(["--steps", "8", "--embd", "32", "--layers", "2", "--heads", "2",
                        "--batch-tokens", "1024", "--eval-seconds", "0", "--threads", "1"])
    return train.Run(args, data.Data(tokenizer, np.asarray(ids * 4, dtype=np.int64), [ids[1:100]],
                                     [tokenizer.decode(ids[1:100])], [TEXT]), folder)


class BpeTest(unittest.TestCase):
    def test_round_trip_of_any_text(self) -> None:
        tokenizer = bpe.Tokenizer(bpe.train(TEXT, 300))
        for text in (TEXT, "", "\u00e9t\u00e9 \u2014 \U0001f984\n\n\t x  y", "\x00\x7f\u00ad"):
            self.assertEqual(tokenizer.decode(tokenizer.encode(text)), text)

    def test_earliest_merge_first(self) -> None:
        merges = bpe.train("aab aab aab ab", 259)
        self.assertEqual(merges[0], ("a", "b"))
        tokenizer = bpe.Tokenizer([("a", "b"), ("a", "a"), ("aa", "b")])
        self.assertEqual([tokenizer.tokens[i] for i in tokenizer.encode("aab")], ["a", "ab"])

    def test_alphabet_and_end_token(self) -> None:
        self.assertEqual(len(set(bpe.byte_alphabet())), 256)
        self.assertEqual(bpe.to_alphabet(" \n"), "\u0120\u010a")
        tokenizer = bpe.Tokenizer(bpe.train(TEXT, 300))
        self.assertEqual(tokenizer.tokens[tokenizer.end_id], bpe.END_OF_TEXT)
        self.assertEqual(tokenizer.end_id, len(tokenizer.tokens) - 1)

    def test_saved_files_agree(self) -> None:
        tokenizer = bpe.Tokenizer(bpe.train(TEXT, 300))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tokenizer.save(folder)
            self.assertEqual(bpe.Tokenizer.load(folder).tokens, tokenizer.tokens)
            whole = json.loads((folder / "tokenizer.json").read_text("utf-8"))
            self.assertEqual(whole["model"]["vocab"],
                             json.loads((folder / "vocab.json").read_text("utf-8")))
            self.assertEqual(whole["model"]["merges"], [f"{a} {b}" for a, b in tokenizer.merges])


class CorpusTest(unittest.TestCase):
    def test_split_is_disjoint_and_whole(self) -> None:
        stories = [corpus.Story("a", "s", [f"Paragraph {i} of the story." * 5 for i in range(400)])]
        learned, held = corpus.split_held_out(stories, run_bytes=500)
        a, b = {p for d in learned for p in d}, {p for d in held for p in d}
        self.assertFalse(a & b)
        self.assertEqual(len(a | b), 400)
        self.assertTrue(0.02 < len(b) / 400 < 0.08)

    def test_dialogue_gets_double_quotes(self) -> None:
        self.assertEqual(corpus.unify_dialogue("'Don't go,' said he, 'the king's at home!'"),
                         "\"Don't go,\" said he, \"the king's at home!\"")
        self.assertEqual(corpus.unify_dialogue("\u2018'Tis I,' he said."), "\"'Tis I,\" he said.")


class ModelTest(unittest.TestCase):
    def test_fused_ops_match_the_definition(self) -> None:
        params = model.init_params(CONFIG, 3)
        for name in params:
            params[name] = (params[name] * 2).requires_grad_()
        tokens = torch.randint(0, 300, (2, 33), generator=torch.Generator().manual_seed(1))
        inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        model.train_loss(params, CONFIG, inputs, targets, 0, 0.0, 1).backward()
        fused = {name: p.grad.clone() for name, p in params.items()}
        for p in params.values():
            p.grad = None
        out = model.logits(params, CONFIG, inputs)
        torch.nn.functional.cross_entropy(out.flatten(0, 1), targets.flatten()).backward()
        for name, p in params.items():
            difference = float((p.grad - fused[name]).norm())
            self.assertLess(difference, 0.04 * float(p.grad.norm()) + 1e-3, name)

    def test_gelu_stays_finite_far_from_zero(self) -> None:
        x = torch.linspace(-300, 300, 6001).to(torch.bfloat16).requires_grad_()
        y = ops.Gelu.apply(x)
        y.sum().backward()
        self.assertTrue(bool(y.isfinite().all()) and bool(x.grad.isfinite().all()))
        self.assertLess(float((y - x.clamp(min=0)).abs().max()), 0.2)

    def test_export_gives_the_same_logits(self) -> None:
        params = model.init_params(CONFIG, 1)
        halves = {name: p.half().float() for name, p in params.items()}
        tokenizer = bpe.Tokenizer(bpe.train(TEXT, 300))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            export.save_model(folder, params, CONFIG, tokenizer)
            loaded, config = export.load_model(folder)
            start = int.from_bytes((folder / "model.safetensors").read_bytes()[:8], "little")
        self.assertEqual(start % 8, 0)
        self.assertEqual(config, CONFIG)
        tokens = torch.arange(20)[None]
        self.assertTrue(torch.equal(model.logits(loaded, config, tokens),
                                    model.logits(halves, CONFIG, tokens)))

    def test_resumed_run_equals_an_uninterrupted_one(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            straight = small_run(folder)
            straight.train()
            (folder / "checkpoint.pt").unlink()
            first = small_run(folder)
            first.train(stop_at_step=3)
            first.save()
            second = small_run(folder)
            self.assertTrue(second.resume())
            second.train()
        for key, p in straight.params.items():
            self.assertTrue(torch.equal(p, second.params[key]), key)
        for key, p in straight.average.items():
            self.assertTrue(torch.equal(p, second.average[key]), key)

    def test_run_begins_with_the_weights_of_a_model_folder(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            run = small_run(folder / "run")
            other = model.init_params(run.config, 9)
            export.save_model(folder / "other", other, run.config, run.data.tokenizer)
            run.args.init, run.args.weights = "a run without a checkpoint", folder / "other"
            self.assertFalse(run.resume())
        for key, p in run.params.items():
            self.assertTrue(torch.equal(p, other[key].half().float()), key)
            self.assertTrue(torch.equal(run.average[key], p), key)

    def test_sliding_windows_score_every_token_once(self) -> None:
        params = {n: torch.zeros_like(p) for n, p in model.init_params(CONFIG, 1).items()}
        for length in (1, 31, 32, 33, 100):
            nats = evaluate.document_nats(params, CONFIG, [5] * length, 299, stride=16)
            self.assertAlmostEqual(nats, length * float(np.log(300)), places=3)


class SamplingTest(unittest.TestCase):
    def test_penalty_top_p_and_min_p_leave_what_they_say(self) -> None:
        logits = torch.tensor([[2.0, 1.0, -1.0, 0.5, -3.0]])
        ids = torch.tensor([[0, 2, 0]])

        def kept(**settings: float) -> dict[int, float]:
            plain = {"temperature": 1.0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
            row = evaluate.probabilities(logits, ids, **{**plain, **settings})[0].tolist()
            return {i: round(math.log(p), 3) for i, p in enumerate(row) if p > 0}

        everything = kept()
        self.assertEqual(set(everything), {0, 1, 2, 3, 4})
        # 2 / 4 and -1 * 4, once each, however often an id was seen.
        penalised = kept(repetition_penalty=4.0)
        self.assertAlmostEqual(penalised[0] - penalised[3], 0.0, places=2)
        self.assertAlmostEqual(penalised[1] - penalised[2], 5.0, places=2)
        # The likeliest has 0.60, the next one 0.22.
        self.assertEqual(set(kept(top_p=0.5)), {0})
        self.assertEqual(set(kept(top_p=0.7)), {0, 1})
        self.assertEqual(set(kept(min_p=0.3)), {0, 1})


class NgramTest(unittest.TestCase):
    def test_probabilities_add_up_to_one(self) -> None:
        rng = np.random.default_rng(1)
        stream = (rng.integers(0, 5, 300) + rng.integers(0, 3, 300)).tolist()
        table = ngram.KneserNey(stream, 8, 3)
        for context in ((0, 1), (3, 3), (7, 7), (2,)):
            self.assertAlmostEqual(sum(table.probability(context, t) for t in range(8)), 1.0)


if __name__ == "__main__":
    unittest.main()
