#!/usr/bin/env python3
"""Goldens of the block-quantised types, by the gguf package (pip install gguf): TYPE.blocks -> TYPE.f32, and quantize.f32 -> quantize.blocks (Q8_0).

Blocks are random bytes whose fp16 scales are made finite (denormals and zeros among them), so every bit of a layout matters.
"""
import numpy as np
from gguf import GGMLQuantizationType as T, GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

rng = np.random.default_rng(3)
scales_at = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
             "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
for name, at in scales_at.items():
    t = T[name]
    block, size = GGML_QUANT_SIZES[t]
    n = 1024 // block
    b = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for o in at:
        s = rng.normal(0, 0.05, n).astype(np.float16)
        s[0] = np.float16(6e-8)    # the smallest denormal
        b[:, o:o + 2] = s.view(np.uint8).reshape(n, 2)
    b.tofile(f"{name}.blocks")
    dequantize(b.reshape(-1), t).astype("<f4").tofile(f"{name}.f32")

x = rng.normal(0, 1, (40, 32)).astype(np.float32)
x *= 10.0 ** rng.integers(-8, 5, (40, 1)).astype(np.float32)
x[0] = 0
x[1] = np.arange(32) - 15.5           # halves: ties round away from zero
x[1, 0] = 127
x[2] = rng.normal(0, 1e-36, 32)       # a denormal scale that has an inverse
x[3, 3] = -x[3].max() * 4             # the largest one is negative
x.astype("<f4").tofile("quantize.f32")
quantize(x, T.Q8_0).tofile("quantize.blocks")
