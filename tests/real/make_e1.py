#!/usr/bin/env python3
"""Goldens of MUST-13: sums of log p of continuations, by transformers in fp32.   make_e1.py MODEL.gguf OUT
The context's ids and the continuation's are made apart, as a model that answers a prompt meets them (fault K3)."""
import json, os, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

gguf, out = sys.argv[1:]
d, f = os.path.dirname(gguf), os.path.basename(gguf)
tok = AutoTokenizer.from_pretrained(d, gguf_file=f)
model = AutoModelForCausalLM.from_pretrained(d, gguf_file=f, dtype=torch.float32).eval()
contexts = ["Question: What is the capital of France?\nAnswer:", "Answer: ", "The sky is", "1 + 1 =", "def f(x):\n    return", "Once upon a"]
continuations = [" Paris", "Paris", " blue and the sea is green.", " 2", " x + 1\n", " time, there was a dragon"]
with torch.no_grad(), open(out + "/e1.jsonl", "w") as o:
    for i, c in enumerate(contexts):
        for k in range(5):
            a = continuations[(i + k) % 6]
            x, y = tok(c, add_special_tokens=False)["input_ids"], tok(a, add_special_tokens=False)["input_ids"]
            logp = torch.log_softmax(model(input_ids=torch.tensor([x + y])).logits[0].double(), -1)
            rows = [logp[len(x) + j - 1] for j in range(len(y))]
            o.write(json.dumps({"prompt": c, "completion": a, "logp": float(sum(r[t] for r, t in zip(rows, y))), "tokens": len(y),
                                "greedy": all(int(r.argmax()) == t for r, t in zip(rows, y))}) + "\n")
