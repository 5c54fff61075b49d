"""Writes a checkpoint as a plain Hugging Face GPT-2, stored F16.

    python3 scripts/train-demo/export.py --run longer --out models/fairy-tale

model.safetensors is written and read here without the library: a little-endian
u64 with the header's length, the header (JSON, padded with spaces to a
multiple of 8 bytes), then the tensors one after the other.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import struct

import numpy as np
import torch

import bpe
import data as data_module
import model

# The logs and options of the runs that led to the shipped model.
RECORDS = pathlib.Path(__file__).resolve().parent / "runs"

_TYPES = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


# What generation_config.json recommends.  With temperature and top-p alone a small model
# repeats itself ("a son, and a son of a son"), and about a third of its sentences were
# grammatical by the reading that gives the card's figure.
SAMPLING = {"temperature": 0.8, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2}


def write_safetensors(path: pathlib.Path, tensors: dict[str, np.ndarray],
                      metadata: dict[str, str]) -> None:
    """Writes arrays of f16 or f32 in the order of their names."""
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name in sorted(tensors):
        array = tensors[name]
        kind = next(k for k, dtype in _TYPES.items() if dtype == array.dtype)
        header[name] = {"dtype": kind, "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(np.ascontiguousarray(tensors[name]).tobytes())


def read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads a file with f16 or f32 tensors."""
    raw = path.read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        out[name] = np.frombuffer(raw[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
    return out


def save_model(folder: pathlib.Path, params: model.Params, config: model.Config,
               tokenizer: bpe.Tokenizer) -> None:
    """Writes the whole model folder but its card."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder)
    write_safetensors(folder / "model.safetensors",
                      {f"transformer.{name}": p.detach().numpy().astype("<f2")
                       for name, p in params.items()}, {"format": "pt"})
    end = tokenizer.end_id
    _dump(folder / "config.json", {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
        "activation_function": "gelu_new", "attn_pdrop": 0.0, "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-5,
        "vocab_size": config.vocab_size, "n_positions": config.n_positions,
        "n_ctx": config.n_positions, "n_embd": config.n_embd, "n_layer": config.n_layer,
        "n_head": config.n_head, "n_inner": None, "scale_attn_weights": True,
        "tie_word_embeddings": True, "bos_token_id": end, "eos_token_id": end,
        "torch_dtype": "float16", "use_cache": True})
    _dump(folder / "generation_config.json", {
        "bos_token_id": end, "eos_token_id": end, "do_sample": True, **SAMPLING})


def load_model(folder: pathlib.Path) -> tuple[model.Params, model.Config]:
    """Reads what save_model wrote, widened to f32."""
    raw = json.loads((folder / "config.json").read_text("utf-8"))
    config = model.Config(*(raw[k] for k in ("vocab_size", "n_positions", "n_embd", "n_layer",
                                             "n_head")))
    tensors = read_safetensors(folder / "model.safetensors")
    return {name.removeprefix("transformer."): torch.from_numpy(array.astype(np.float32))
            for name, array in tensors.items()}, config


def _dump(path: pathlib.Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def keep_record(run: str) -> None:
    """Copies a run's log and options from the build folder, for the model card."""
    folder = data_module.BUILD / run
    RECORDS.mkdir(exist_ok=True)
    shutil.copyfile(folder / "log.csv", RECORDS / f"{run}.csv")
    options = json.loads((folder / "args.json").read_text("utf-8"))
    for of_a_machine in ("corpora", "run", "weights"):
        options.pop(of_a_machine, None)
    _dump(RECORDS / f"{run}.json", options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="longer")
    parser.add_argument("--out", type=pathlib.Path, default=data_module.ROOT / "models/fairy-tale")
    parser.add_argument("--weights", choices=("average", "params"), default="average")
    args = parser.parse_args()
    state = torch.load(data_module.BUILD / args.run / "checkpoint.pt")
    config = model.Config(**state["config"])
    tokenizer = bpe.Tokenizer.load(data_module.BUILD / f"vocab-{config.vocab_size}")
    save_model(args.out, state[args.weights], config, tokenizer)
    keep_record(args.run)
    print(f"step {state['step']}, {model.count(state['params'])} parameters -> {args.out}")


if __name__ == "__main__":
    main()
