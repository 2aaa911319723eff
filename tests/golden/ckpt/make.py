#!/usr/bin/env python3
"""Models, adapters and expected results for tests/ckpt.bats; run by hand in this folder, never by the tests.

  llama/    untied, GQA 4/2, heads of 16 (not hidden/heads), llama3 rope scaling, fp32, a byte-level BPE tokenizer with ChatML and a list of eos ids
  qwen2/    tied, biases, bf16, in two shards
  lora/     a PEFT adapter of llama/ (r 4, alpha 6, all linears), lora.merged.safetensors: peft's merge_and_unload
  rslora/   a PEFT adapter of qwen2/ (r 3, alpha 6, rslora, q v down), rslora.merged.safetensors: the merge in fp32
  gguf.safetensors   what a GGUF of llama/ must hold for q, k, rope_freqs and, of lora/, lora_b of q and k (llama.cpp's permute)
"""
import json, os, shutil
import numpy as np, torch, transformers, peft, tokenizers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers, AddedToken
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(0)
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
text = ["the cat sat on the mat and the rat sat on the cat", "there is a theme in the other weather", "12345 numbers and words, naïve café"]
for d in ("llama", "qwen2", "lora", "rslora"):
    shutil.rmtree(d, ignore_errors=True)


def tokenizer(out, pre, norm=None):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    if norm:
        t.normalizer = norm
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=296, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(x, special=True) for x in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    t.add_tokens([AddedToken("<tool>", special=False)])
    f = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|endoftext|>", eos_token="<|im_end|>", pad_token="<|endoftext|>")
    f.chat_template = CHATML
    f.save_pretrained(out)
    return f


common = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=312,
              max_position_embeddings=256, initializer_range=0.3)
gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
f = tokenizer("llama", gpt2)
eot, eos = f.convert_tokens_to_ids("<|im_end|>"), f.convert_tokens_to_ids("<|endoftext|>")
rope = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
llama = LlamaForCausalLM(LlamaConfig(**common, head_dim=16, rope_parameters=rope, tie_word_embeddings=False, rms_norm_eps=1e-5, bos_token_id=eos,
                                     eos_token_id=[eot, eos], pad_token_id=eos))
for n, p in llama.named_parameters():
    if "norm" in n:
        torch.nn.init.normal_(p, 1, 0.1)
llama.generation_config.eos_token_id = [eot, eos]
llama.save_pretrained("llama")

qwen = Qwen2ForCausalLM(Qwen2Config(**common, tie_word_embeddings=True, bos_token_id=eos, eos_token_id=eot))
for n, p in qwen.named_parameters():
    if n.endswith("bias"):
        torch.nn.init.normal_(p, 0, 0.2)
qwen = qwen.to(torch.bfloat16)
qwen.save_pretrained("qwen2", max_shard_size="30KB")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
tokenizer("qwen2", pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers.Regex(QWEN), "isolated", False),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), tokenizers.normalizers.NFC())


def adapter(model, base, out, **kw):
    m = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, base_model_name_or_path=base, **kw))
    for n, p in m.named_parameters():
        if "lora_" in n:
            p.data = torch.randn(p.shape) * 0.2
    m.peft_config["default"].base_model_name_or_path = base
    m.save_pretrained(out)
    c = json.load(open(f"{out}/adapter_config.json"))
    c["target_modules"] = sorted(c["target_modules"])
    json.dump(c, open(f"{out}/adapter_config.json", "w"), indent=2)
    if os.path.exists(f"{out}/README.md"):
        os.remove(f"{out}/README.md")
    lora = {n: p.detach().clone() for n, p in m.named_parameters() if "lora_" in n}
    merged = m.merge_and_unload()
    return lora, {n: p.detach().clone() for n, p in merged.state_dict().items()}


lora, merged = adapter(LlamaForCausalLM.from_pretrained("llama"), "../llama", "lora", r=4, lora_alpha=6,
                       target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
save_file(merged, "lora.merged.safetensors", metadata={"format": "pt"})
_, merged = adapter(Qwen2ForCausalLM.from_pretrained("qwen2", dtype=torch.float32), "../qwen2", "rslora", r=3, lora_alpha=6, use_rslora=True,
                    target_modules=["q_proj", "v_proj", "down_proj"])
merged.pop("lm_head.weight", None)
save_file(merged, "rslora.merged.safetensors", metadata={"format": "pt"})


def permute(w, heads):   # llama.cpp convert_hf_to_gguf.py, LlamaModel.permute
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


sd, out = llama.state_dict(), {}
for l in range(2):
    for x, gx, heads in (("q", "attn_q", 4), ("k", "attn_k", 2)):
        out[f"blk.{l}.{gx}.weight"] = permute(sd[f"model.layers.{l}.self_attn.{x}_proj.weight"], heads).contiguous()
        b = lora[f"base_model.model.model.layers.{l}.self_attn.{x}_proj.lora_B.default.weight"]
        out[f"blk.{l}.{gx}.weight.lora_b"] = permute(b, heads).contiguous()
        out[f"blk.{l}.{gx}.weight.lora_a"] = lora[f"base_model.model.model.layers.{l}.self_attn.{x}_proj.lora_A.default.weight"].contiguous()
# rope_freqs as LlamaModel.generate_extra_tensors has them
dim, base = 16, 10000.0
freqs = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
factors = []
for fr in freqs:
    wl = 2 * np.pi / fr
    if wl < 64 / 4.0:
        factors.append(1.0)
    elif wl > 64 / 1.0:
        factors.append(8.0)
    else:
        s = (64 / wl - 1.0) / (4.0 - 1.0)
        factors.append(1 / ((1 - s) / 8.0 + s))
out["rope_freqs.weight"] = torch.tensor(factors, dtype=torch.float32)
save_file(out, "gguf.safetensors", metadata={"format": "pt"})
with open("versions.txt", "w") as v:
    v.write(f"torch {torch.__version__}\ntransformers {transformers.__version__}\npeft {peft.__version__}\ntokenizers {tokenizers.__version__}\n")
