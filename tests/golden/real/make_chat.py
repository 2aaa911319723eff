#!/usr/bin/env python3
"""chat.jsonl and chat_ids.jsonl: conversations, and the ids that transformers' apply_chat_template gives them with SmolLM2-135M-Instruct.

Needs transformers, gguf and torch, and the model: make_chat.py SmolLM2-135M-Instruct.Q4_1.gguf.  No test runs it.
"""
import json
import os
import sys

from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

path = os.path.abspath(sys.argv[1])
os.chdir(os.path.dirname(os.path.abspath(__file__)))
tok = AutoTokenizer.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path))
# What SmolLM2's tokenizer.json says (and llama.cpp's "smollm"); transformers leaves the digits out when it reads a GGUF.
tok.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])

seen, chats = set(), []
for line in open("../chat/render.jsonl"):
    row = json.loads(line)
    key = json.dumps(row["messages"])
    if row["template"] == "smollm2" and key not in seen and any(m["role"] == "assistant" and m["content"] for m in row["messages"]):
        seen.add(key)
        chats.append(row["messages"])
for text in ("def f(x):\n\treturn x**2  # 12345\n", "Ünïcödé 中文 日本語 한국어 العربية", "a" * 300, "1,000,000.50 don't I'LL we've", " \t\n\n  x"):
    chats.append([{"role": "user", "content": text}, {"role": "assistant", "content": text[::-1]}])

with open("chat.jsonl", "w") as rows, open("chat_ids.jsonl", "w") as ids:
    for messages in chats:
        rows.write(json.dumps({"messages": messages}) + "\n")
        got = tok.apply_chat_template(messages, tokenize=True, return_dict=False)
        ids.write(json.dumps(got, separators=(",", ":")) + "\n")
