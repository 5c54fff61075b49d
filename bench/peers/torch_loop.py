"""PyTorch's best greedy loop for GPT-2 on a CPU: a preallocated cache, and matrix-vector products.

A Linear of one row goes through PyTorch's GEMM, which is half as fast as `mv`. How matrices are best laid out depends on
the BLAS and the threads, so the warm-up tries both ways. Prints one line of JSON:
{"times": seconds from the start to each token, "ids": [...], "layout": "...", "version": "..."}.

Usage: torch_loop.py CHECKPOINT THREADS TOKENS ID...
"""

import json
import math
import sys
import time

import numpy
import torch

WARM_UP_TOKENS = 12

# From weights [in, out] to the matrix [out, in] that `mv` takes.
LAYOUTS = {
    "by input": lambda weight: weight.contiguous().t(),
    "by output": lambda weight: weight.t().contiguous(),
}


def read_checkpoint(folder):
    """The float32 tensors of model.safetensors by name, and the config."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    path = f"{folder}/model.safetensors"
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    # Copied on write, so that PyTorch may have it; nothing is written.
    data = numpy.memmap(path, mode="c", offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = data[begin:end].view(numpy.float32).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values).clone()
    return config, tensors


class Model:
    """One token at a time, with keys and values [layers, heads, positions, head dim]."""

    def __init__(self, config, tensors, positions, lay_out):
        self.heads = config["n_head"]
        self.width = config["n_embd"]
        self.epsilon = config["layer_norm_epsilon"]
        self.head_dim = self.width // self.heads
        self.wte, self.wpe = tensors["wte.weight"], tensors["wpe.weight"]
        self.head = lay_out(self.wte.t())
        self.final = tensors["ln_f.weight"], tensors["ln_f.bias"]
        self.layers = []
        for i in range(config["n_layer"]):
            layer = {}
            for name in ("ln_1", "ln_2"):
                layer[name] = tensors[f"h.{i}.{name}.weight"], tensors[f"h.{i}.{name}.bias"]
            for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
                weight = lay_out(tensors[f"h.{i}.{name}.weight"])
                layer[name] = weight, tensors[f"h.{i}.{name}.bias"]
            self.layers.append(layer)
        shape = (len(self.layers), self.heads, positions, self.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)

    def norm(self, x, weights):
        return torch.nn.functional.layer_norm(x, (self.width,), *weights, self.epsilon)

    def step(self, token, position):
        """The logits after `token` at `position`."""
        x = self.wte[token] + self.wpe[position]
        seen = position + 1
        for i, layer in enumerate(self.layers):
            weight, bias = layer["attn.c_attn"]
            qkv = torch.addmv(bias, weight, self.norm(x, layer["ln_1"]))
            query, key, value = qkv.view(3, self.heads, self.head_dim)
            self.keys[i, :, position] = key
            self.values[i, :, position] = value
            scores = torch.bmm(self.keys[i, :, :seen], query.unsqueeze(2)).squeeze(2)
            shares = torch.softmax(scores / math.sqrt(self.head_dim), dim=1)
            mixed = torch.bmm(shares.unsqueeze(1), self.values[i, :, :seen]).view(self.width)
            weight, bias = layer["attn.c_proj"]
            x = x + torch.addmv(bias, weight, mixed)
            weight, bias = layer["mlp.c_fc"]
            inner = torch.addmv(bias, weight, self.norm(x, layer["ln_2"]))
            inner = torch.nn.functional.gelu(inner, approximate="tanh")
            weight, bias = layer["mlp.c_proj"]
            x = x + torch.addmv(bias, weight, inner)
        return torch.mv(self.head, self.norm(x, self.final))


def generate(model, prompt, count):
    """Greedy: (ids, seconds from the start to each)."""
    ids, times = [], []
    started = time.perf_counter()
    for position, token in enumerate(prompt):
        logits = model.step(token, position)
    while True:
        ids.append(int(logits.argmax()))
        times.append(time.perf_counter() - started)
        if len(ids) == count:
            return ids, times
        logits = model.step(ids[-1], len(prompt) + len(ids) - 1)


def main():
    folder, threads, count, *prompt = sys.argv[1:]
    prompt = [int(token) for token in prompt]
    torch.set_num_threads(int(threads))
    with torch.inference_mode():
        checkpoint = read_checkpoint(folder)
        positions = len(prompt) + max(int(count), WARM_UP_TOKENS)
        tried = {}
        for layout, lay_out in LAYOUTS.items():
            model = Model(*checkpoint, positions, lay_out)
            times = generate(model, prompt, WARM_UP_TOKENS)[1]
            tried[times[-1] - times[0]] = layout, model
        layout, model = tried[min(tried)]
        ids, times = generate(model, prompt, int(count))
    result = {"times": times, "ids": ids, "layout": layout, "version": torch.__version__}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
