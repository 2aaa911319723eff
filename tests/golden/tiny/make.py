#!/usr/bin/env python3
"""Goldens of tiny models: logits, loss, every gradient, and parameters after 5 AdamW steps, in float64.

Made with transformers and peft (see versions.txt); run by hand in this folder, never by the tests.

  weights.safetensors      fp32 values of all models: each takes the tensors it has (wide_heads has its own file)
  NAME/config.json         as transformers writes it
  NAME/golden.safetensors  the pack (ids, mask, cu), logits of some rows, losses and gradient norms of 5 steps, and of each
                           parameter up to SAMPLE entries (entry k is k * n / m) of gradient and value after 5 steps
  NAME/adapter/            a PEFT folder, for the LoRA cases

Each document is run alone, so the references can't leak across a pack.
"""
import os, shutil, sys
import numpy as np, torch, transformers, peft
from safetensors.numpy import save_file
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM

SAMPLE, VOCAB = 384, 512
torch.set_num_threads(2)
base = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=VOCAB,
            max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, attn_implementation="eager")
llama3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
linear = dict(rope_type="linear", rope_theta=10000.0, factor=4.0)
L, M, Q = (LlamaConfig, LlamaForCausalLM), (MistralConfig, MistralForCausalLM), (Qwen2Config, Qwen2ForCausalLM)
short, long = [1, 17, 9, 25, 12], [3, 220]
CASES = {
    "llama": (L, dict(tie_word_embeddings=False), short, None),
    "llama_tied": (L, dict(tie_word_embeddings=True), short, None),
    "llama_rope3": (L, dict(tie_word_embeddings=True, rope_parameters=llama3), long, None),
    "llama_linear": (L, dict(tie_word_embeddings=True, rope_parameters=linear), long, None),
    "mistral": (M, dict(tie_word_embeddings=False, sliding_window=8), short, None),
    "qwen2": (Q, dict(tie_word_embeddings=False, rms_norm_eps=1e-6), short, None),
    "qwen2_tied": (Q, dict(tie_word_embeddings=True, rms_norm_eps=1e-6), short, None),
    "wide_heads": (L, dict(tie_word_embeddings=True, head_dim=24), short, None),
    "lora": (L, dict(tie_word_embeddings=False), short, dict(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=
             ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])),
    "rslora": (Q, dict(tie_word_embeddings=False, rms_norm_eps=1e-6), short, dict(r=3, lora_alpha=6, lora_dropout=0.0, use_rslora=True,
             target_modules=["q_proj", "v_proj", "up_proj", "down_proj"], modules_to_save=["embed_tokens", "lm_head"])),
}


def weights(shapes):
    g = np.random.default_rng(0)
    out = {}
    for name, shape in sorted(shapes.items()):
        x = g.standard_normal(shape)
        if name.endswith("norm.weight"):
            x = 1 + 0.1 * x
        elif name.endswith("bias"):
            x = 0.2 * x
        elif "embed" in name:
            x = 0.2 * x         # logits of a tied head stay near 1, so that an absolute bound means something
        else:
            x = x / np.sqrt(shape[1])
        out[name] = x.astype(np.float32)
    return out


def sample(x):
    x = x.detach().double().numpy().ravel()
    m = min(len(x), SAMPLE)
    return x[np.arange(m) * len(x) // m].astype(np.float32)


def loss_of(model, docs, masks, n):
    total, logits = 0, []
    for ids, mask in zip(docs, masks):
        lg = model(torch.tensor(ids)[None]).logits[0]
        logits.append(lg)
        lp = torch.log_softmax(lg[:-1], -1).gather(1, torch.tensor(ids[1:], dtype=torch.long)[:, None])[:, 0]
        total = total - (lp * torch.tensor(mask[1:], dtype=torch.float64)).sum()
    return total / n, torch.cat(logits)


def clean(name):
    return name.replace(".default", "").replace(".modules_to_save", "")


def run(name, kind, over, lens, lora, store):
    os.makedirs(name, exist_ok=True)
    cfg = kind[0](**{**base, **over})
    model = kind[1](cfg)
    shapes = {k: tuple(v.shape) for k, v in model.named_parameters()}
    w = weights(shapes) if name == "wide_heads" else {k: store[k] for k in shapes}
    if name == "wide_heads":
        save_file(w, "wide_heads/weights.safetensors", {"format": "pt"})
    missing = model.load_state_dict({k: torch.tensor(v) for k, v in w.items()}, strict=False)
    assert not missing.unexpected_keys and all(k == "lm_head.weight" and over["tie_word_embeddings"] for k in missing.missing_keys), missing
    cfg.save_pretrained(name)
    if lora:
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **lora))
        g = np.random.default_rng(5)
        for k, p in model.named_parameters():
            if "lora_B" in k:
                p.data = torch.tensor(0.2 * g.standard_normal(p.shape), dtype=torch.float32)
            elif "lora_A" in k:
                p.data = torch.tensor(g.standard_normal(p.shape) / np.sqrt(p.shape[1]), dtype=torch.float32)
        shutil.rmtree(f"{name}/adapter", ignore_errors=True)
        model.save_pretrained(f"{name}/adapter")
        os.remove(f"{name}/adapter/README.md")
    model = model.double()
    model.train()

    g = np.random.default_rng(1)
    docs = [g.integers(0, VOCAB - 12, n).tolist() for n in lens]        # the last 12 ids are never used
    masks = [[0] + (g.random(n - 1) < 0.6).astype(int).tolist() if i != 2 else [0] * n for i, n in enumerate(lens)]
    n = sum(map(sum, masks))
    out = {"ids": np.array(sum(docs, []), np.int32), "mask": np.array(sum(masks, []), np.uint8), "cu": np.cumsum([0] + lens).astype(np.int32)}

    params = [(clean(k), p) for k, p in model.named_parameters() if p.requires_grad]
    opt = torch.optim.AdamW([{"params": [p for _, p in params if p.ndim == 2], "weight_decay": 0.1},
                             {"params": [p for _, p in params if p.ndim != 2], "weight_decay": 0.0}], lr=1e-3, eps=EPS)
    losses, norms = [], []
    for step in range(5):
        opt.zero_grad()
        loss, logits = loss_of(model, docs, masks, n)
        loss.backward()
        if step == 0:
            rows = np.arange(sum(lens)) if sum(lens) < 100 else np.r_[0:4, 100:104, 200:223]
            out["rows"], out["logits"] = rows.astype(np.int32), logits[rows].detach().numpy().astype(np.float32)
            for k, p in params:
                out["grad." + k], out["gmax." + k] = sample(p.grad), np.array([p.grad.abs().max()], np.float32)
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_([p for _, p in params], 1.0).item())
        opt.step()
    out["losses"], out["norms"] = np.array(losses), np.array(norms)
    for k, p in params:
        out["after." + k] = sample(p)
    save_file(out, f"{name}/golden.safetensors", {"format": "pt"})
    print(name, "params", sum(p.numel() for _, p in params), "losses", losses, "norm", norms[0])


# Adam divides by |g| + eps: where a gradient is as small as fp32's own error in it (1e-9 here), eps 1e-8 makes the update a matter of
# that error.  At 1e-6 a right fp32 implementation is within 1e-6 of float64 everywhere.
EPS = 1e-6
if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    full = {}
    for kind in (L, Q):
        full.update({k: tuple(v.shape) for k, v in kind[1](kind[0](**{**base, "tie_word_embeddings": False})).named_parameters()})
    store = weights(full)
    save_file(store, "weights.safetensors", {"format": "pt"})
    for name, (kind, over, lens, lora) in CASES.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            run(name, kind, over, lens, lora, store)
    with open("versions.txt", "w") as f:
        f.write(f"torch {torch.__version__}\ntransformers {transformers.__version__}\npeft {peft.__version__}\nnumpy {np.__version__}\n")
