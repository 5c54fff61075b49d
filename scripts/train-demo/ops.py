"""The training step's operations: fused bf16 ones with hand-written gradients.

`kernels.cpp` is compiled on first use into the build folder.  The matrix
products stay PyTorch's (oneDNN in bf16); all the rest goes through the fused
kernels.  `model.py` has the same network in plain f32 PyTorch, which evaluation
and the tests use as the reference.
"""

from __future__ import annotations

import ctypes
import pathlib
import subprocess

import torch

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "train-demo"
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The compiled kernels."""
    global _library
    if _library is None:
        source = pathlib.Path(__file__).with_name("kernels.cpp")
        target = BUILD / "kernels.so"
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            BUILD.mkdir(parents=True, exist_ok=True)
            subprocess.run(["g++", "-O3", "-march=native", "-mprefer-vector-width=512",
                            "-ffast-math", "-fopenmp", "-shared", "-fPIC", "-std=c++17",
                            str(source), "-o", str(target)], check=True)
        _library = ctypes.CDLL(str(target))
    return _library


def _p(tensor: torch.Tensor) -> ctypes.c_void_p:
    """The tensor's data; the caller keeps the tensor until the kernel is done."""
    assert tensor.is_contiguous()
    return ctypes.c_void_p(tensor.data_ptr())


def _n(value: int) -> ctypes.c_long:
    return ctypes.c_long(value)


class LayerNorm(torch.autograd.Function):
    """x [M, D] f32 -> [M, D] bf16."""

    @staticmethod
    def forward(ctx, x, gain, bias):
        M, D = x.shape
        y = torch.empty(M, D, dtype=torch.bfloat16)
        mean, rstd = torch.empty(M), torch.empty(M)
        library().layer_norm_forward(_p(x), _p(gain), _p(bias), _p(y), _p(mean), _p(rstd),
                                     _n(M), _n(D))
        ctx.save_for_backward(x, gain, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gain, mean, rstd = ctx.saved_tensors
        M, D = x.shape
        dy = dy.contiguous()
        dx, dgain, dbias = torch.empty(M, D), torch.empty(D), torch.empty(D)
        library().layer_norm_backward(_p(dy), _p(x), _p(gain), _p(mean), _p(rstd),
                                      _p(dx), _p(dgain), _p(dbias), _n(M), _n(D))
        return dx, dgain, dbias


class Linear(torch.autograd.Function):
    """x [M, in] bf16, weight [in, out] f32, bias [out] f32 -> [M, out] bf16."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        w = weight.to(torch.bfloat16)
        ctx.save_for_backward(x, w)
        return torch.addmm(bias.to(torch.bfloat16), x, w)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy.contiguous()
        dbias = torch.empty(dy.shape[1])
        library().column_sum(_p(dy), _p(dbias), _n(dy.shape[0]), _n(dy.shape[1]))
        return dy @ w.t(), (x.t() @ dy).float(), dbias


class Gelu(torch.autograd.Function):
    """GELU, tanh form, bf16."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        library().gelu_forward(_p(x), _p(y), _n(x.numel()))
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty_like(x)
        library().gelu_backward(_p(x), _p(dy), _p(dx), _n(x.numel()))
        return dx


class DropAdd(torch.autograd.Function):
    """x f32 + dropout(y bf16) -> f32."""

    @staticmethod
    def forward(ctx, x, y, rate, seed):
        ctx.args = (ctypes.c_uint32(seed & 0xffffffff),
                    ctypes.c_uint32(int(rate * 2 ** 32)), ctypes.c_float(1.0 / (1.0 - rate)))
        out = torch.empty_like(x)
        library().drop_add_forward(_p(x), _p(y), _p(out), _n(x.numel()), *ctx.args)
        return out

    @staticmethod
    def backward(ctx, dout):
        dout = dout.contiguous()
        dy = torch.empty(dout.shape, dtype=torch.bfloat16)
        library().drop_add_backward(_p(dout), _p(dy), _n(dout.numel()), *ctx.args)
        return dout, dy, None, None


class Attention(torch.autograd.Function):
    """Causal attention: qkv [B*T, 3*D] bf16 -> [B*T, D] bf16."""

    @staticmethod
    def forward(ctx, qkv, B, T, H):
        d = qkv.shape[1] // (3 * H)
        q, k, v = (torch.empty(B * H, T, d, dtype=torch.bfloat16) for _ in range(3))
        library().split_heads(_p(qkv), _p(q), _p(k), _p(v), _n(B), _n(T), _n(H), _n(d))
        p = torch.bmm(q, k.transpose(1, 2))
        ctx.scale = d ** -0.5
        library().causal_softmax_forward(_p(p), _n(B * H), _n(T), ctypes.c_float(ctx.scale))
        ctx.save_for_backward(q, k, v, p)
        ctx.shape = (B, T, H, d)
        out = torch.bmm(p, v)
        return out.view(B, H, T, d).transpose(1, 2).reshape(B * T, H * d)

    @staticmethod
    def backward(ctx, dout):
        q, k, v, p = ctx.saved_tensors
        B, T, H, d = ctx.shape
        do = dout.view(B, T, H, d).transpose(1, 2).reshape(B * H, T, d)
        dv = torch.bmm(p.transpose(1, 2), do)
        dp = torch.bmm(do, v.transpose(1, 2))
        library().causal_softmax_backward(_p(p), _p(dp), _n(B * H), _n(T),
                                          ctypes.c_float(ctx.scale))
        dq = torch.bmm(dp, k).contiguous()
        dk = torch.bmm(dp.transpose(1, 2), q).contiguous()
        dv = dv.contiguous()
        dqkv = torch.empty(B * T, 3 * H * d, dtype=torch.bfloat16)
        library().join_heads(_p(dq), _p(dk), _p(dv),
                             _p(dqkv), _n(B), _n(T), _n(H), _n(d))
        return dqkv, None, None, None


class HeadLoss(torch.autograd.Function):
    """Mean cross-entropy in nats of x [M, D] bf16 @ wte.T against targets [M].

    The gradients are computed on the way, so the logits live only once.
    """

    @staticmethod
    def forward(ctx, x, wte, targets):
        M, V = x.shape[0], wte.shape[0]
        w = wte.to(torch.bfloat16)
        logits = x @ w.t()
        losses = torch.empty(M)
        library().cross_entropy(_p(logits), _p(targets), _p(losses), _n(M), _n(V),
                                ctypes.c_float(1.0))
        ctx.save_for_backward(logits @ w, (logits.t() @ x).float())
        ctx.rows = M
        return losses.mean()

    @staticmethod
    def backward(ctx, dloss):
        dx, dw = ctx.saved_tensors
        factor = float(dloss) / ctx.rows
        return dx * factor, dw * factor, None
