#!/usr/bin/env python3
"""Take safetensors files apart, for tests; the standard library only.

  tensors.py edit FILE [drop A | rename A B | copy A B | rows A N | f32 A I VALUE]...   change FILE in place
  tensors.py within FILE A... OTHER    the bytes of A... stand in the file OTHER
  tensors.py same FILE OTHER           the same tensors, bit for bit, wherever they stand
  tensors.py once BASE ADAPTER OUT TARGET SCALE   TARGET of OUT (bf16) is W + SCALE*B*A, summed in float64, rounded once
"""
import array, json, struct, sys


def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    meta = h.pop("__metadata__", {})
    return meta, {k: (v["dtype"], v["shape"], b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}


def write(path, meta, t):
    h, at = {"__metadata__": meta}, 0
    for k, (dtype, shape, data) in t.items():
        h[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    j = json.dumps(h).encode()
    open(path, "wb").write(struct.pack("<Q", len(j)) + j + b"".join(d for _, _, d in t.values()))


def edit(path, *ops):
    meta, t = read(path)
    ops = list(ops)
    while ops:
        op, a = ops.pop(0), ops.pop(0)
        if op == "drop":
            del t[a]
        elif op == "rename":
            t[ops.pop(0)] = t.pop(a)
        elif op == "copy":
            t[ops.pop(0)] = t[a]
        elif op == "rows":
            n = int(ops.pop(0))
            dtype, shape, data = t[a]
            t[a] = (dtype, [n] + shape[1:], data[:len(data) // shape[0] * n])
        elif op == "f32":
            i, v = int(ops.pop(0)), float(ops.pop(0))
            dtype, shape, data = t[a]
            t[a] = (dtype, shape, data[:4 * i] + struct.pack("<f", v) + data[4 * i + 4:])
    write(path, meta, t)


def within(path, *names):
    t, other = read(path)[1], open(names[-1], "rb").read()
    for k in names[:-1]:
        assert t[k][2] in other, f"{k} is not in {names[-1]}"


def floats(t):
    a = array.array("f")
    if t[0] == "BF16":
        a.frombytes(b"".join(b"\0\0" + t[2][i:i + 2] for i in range(0, len(t[2]), 2)))
    else:
        a.frombytes(t[2])
    return a


def bf16(x):
    """The nearest bf16 to the float64 x, ties to even, exactly: neighbours of the truncated one are tried."""
    def value(h):
        return struct.unpack("<f", struct.pack("<I", h << 16))[0]
    h = struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    return min((h - 1 & 0xffff, h, h + 1 & 0xffff), key=lambda c: (abs(value(c) - x) if value(c) == value(c) else 1e99, c & 1))


def once(base, adapter, out, target, scale):
    p = "base_model.model." + target
    w, (_, ad), got = read(base)[1][target + ".weight"], read(adapter), read(out)[1][target + ".weight"]
    a, b, w32, scale = floats(ad[p + ".lora_A.weight"]), floats(ad[p + ".lora_B.weight"]), floats(w), float(scale)
    (rows, cols), rank = w[1], ad[p + ".lora_A.weight"][1][0]
    assert got[0] == "BF16"
    for i in range(rows):
        for j in range(cols):
            s = 0.0
            for k in range(rank):
                s += b[i * rank + k] * a[k * cols + j]
            want, have = bf16(w32[i * cols + j] + scale * s), struct.unpack_from("<H", got[2], 2 * (i * cols + j))[0]
            assert want == have, (i, j, want, have)


def same(a, b):
    x, y = read(a)[1], read(b)[1]
    assert x == y, sorted(k for k in set(x) | set(y) if x.get(k) != y.get(k))


{"edit": edit, "within": within, "same": same, "once": once}[sys.argv[1]](*sys.argv[2:])
