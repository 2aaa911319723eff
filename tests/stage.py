#!/usr/bin/python3
# stage.py N: a stage of one's own: shard.min_trained by hand.  Reads and writes a plain token stream.
import sys, msgpack
out, kept = sys.stdout.buffer, 0
for tag, m in msgpack.Unpacker(sys.stdin.buffer, max_buffer_size=1 << 28):
    if tag == "TOKS":
        if sum(m["mask"]) < int(sys.argv[1]):
            continue
        kept += 1
    out.write(msgpack.packb([tag, {"n": kept} if tag == "TEND" else m]))
