#!/usr/bin/env python3
"""Writes unicode_tables.c from the Unicode Character Database.

    pip install unicodedata2==16.0.0
    python3 unicode_gen.py >unicode_tables.c

Classes (\\p{L}, \\p{N}, \\s) are Unicode 16.0's, as in the regex engine of Hugging Face tokenizers 0.22 and
0.23.  Normalisation data is that of the characters which Unicode 9.0 had, as in its NFC; the stability
policy keeps classes and decompositions of assigned characters, so they are read from 16.0 too.  The age of
characters comes from perl (any version whose Unicode is 9.0 or later).
"""
import subprocess
import unicodedata2 as u

assert u.unidata_version == "16.0.0"
SPACE = {9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
ages = subprocess.run(["perl", "-e", r'''for (0 .. 0x10FFFF) { no warnings; next if $_ >= 0xD800 && $_ < 0xE000;
	print "$_\n" if chr($_) =~ /\p{Present_In: 9.0}/ }'''], capture_output=True, check=True, text=True)
OLD = set(map(int, ages.stdout.split()))
ALL = range(0x110000)


def klass(c):
    if c in SPACE:
        return 3
    k = u.category(chr(c))[0]
    return 1 if k == "L" else 2 if k == "N" else 0


def ccc(c):
    return u.combining(chr(c)) if c in OLD else 0


def hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def decomposition(c):
    """Full canonical decomposition, or nothing."""
    d = u.decomposition(chr(c)) if c in OLD and not hangul(c) else ""
    if not d or d[0] == "<":
        return []
    out = []
    for x in (int(h, 16) for h in d.split()):
        out += decomposition(x) or [x]
    return out


DECOMP = {c: decomposition(c) for c in ALL if decomposition(c)}
PAIRS = {}
for c in DECOMP:
    d = [int(h, 16) for h in u.decomposition(chr(c)).split()]
    # What composes is what NFC of the pair gives back; that leaves out singletons and the composition exclusions.
    if len(d) == 2 and u.normalize("NFC", "".join(map(chr, d))) == chr(c):
        PAIRS[d[0], d[1]] = c
SECOND = {b for _, b in PAIRS} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def nfc_flag(c):
    """0: may stay as it is, and what follows can't change it; else its combining class, 255 if that is 0."""
    if ccc(c):
        return ccc(c)
    stable = c not in DECOMP or c in PAIRS.values()
    return 0 if stable and c not in SECOND else 255


def stages(values, shift):
    blocks, index = {}, []
    for i in range(0, len(values), 1 << shift):
        index.append(blocks.setdefault(tuple(values[i:i + (1 << shift)]), len(blocks)))
    return index, [v for b in blocks for v in b]


def array(decl, values, fmt="%d"):
    print(f"{decl}[{len(values)}] = {{")
    line = "\t"
    for v in values:
        s = fmt % v + ","
        if len(line) + len(s) > 96:
            print(line)
            line = "\t"
        line += s
    print(line + "\n};\n")


print('/* Written by unicode_gen.py: don\'t edit. */\n#include "libcommon/text/unicode_tables.h"\n')
index, values = stages([klass(c) for c in ALL], 8)
packed = [values[i] | values[i + 1] << 2 | values[i + 2] << 4 | values[i + 3] << 6 for i in range(0, len(values), 4)]
assert max(index) < 256
array("const uint8_t uni_class_index", index)
array("const uint8_t uni_class_block", packed)
index, values = stages([nfc_flag(c) for c in ALL], 7)
assert max(index) < 256
array("const uint8_t uni_nfc_index", index)
array("const uint8_t uni_nfc_block", values)
pool, rows = [], []
for c, d in sorted(DECOMP.items()):
    rows.append((c, len(pool), len(d)))
    pool += d
array("const struct uni_decomp uni_decomps", rows, "{%d,%d,%d}")
print(f"const size_t uni_ndecomps = {len(rows)};\n")
array("const uint32_t uni_decomp_pool", pool)
array("const struct uni_pair uni_pairs", [(a, b, c) for (a, b), c in sorted(PAIRS.items())], "{%d,%d,%d}")
print(f"const size_t uni_npairs = {len(PAIRS)};")
