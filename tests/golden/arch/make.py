"""Configs as transformers 5 writes them, and as published models have them, with what transformers makes of each.

Run once, in this folder:  python make.py   (transformers 5.24, torch 2.15, numpy)
Writes NAME.json (a config.json) and expected.json {NAME: {params, tensors, inv_freq, window, eos}} and gguf_rows.
"""
import json

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

tiny = dict(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)

# Written by transformers 5: rope_parameters, dtype.
new = {
    "llama_tiny": LlamaConfig(**tiny, dtype="bfloat16", architectures=["LlamaForCausalLM"]),
    "llama_tiny_tied": LlamaConfig(**tiny, tie_word_embeddings=True, rms_norm_eps=1e-5),
    "llama_tiny_llama3": LlamaConfig(**tiny, rope_parameters=dict(llama3, rope_theta=500000.0), eos_token_id=[2, 9]),
    "llama_tiny_linear": LlamaConfig(**tiny, rope_parameters=dict(rope_type="linear", factor=2.5, rope_theta=10000.0)),
    "llama_tiny_biases": LlamaConfig(**tiny, attention_bias=True, mlp_bias=True, head_dim=32),
    "mistral_tiny": MistralConfig(**tiny, sliding_window=16),
    "mistral_tiny_full": MistralConfig(**tiny, sliding_window=None, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen2_tiny": Qwen2Config(**tiny, tie_word_embeddings=True, bos_token_id=3, eos_token_id=5, pad_token_id=3),
    "qwen2_tiny_windows": Qwen2Config(**dict(tiny, num_hidden_layers=4), use_sliding_window=True, sliding_window=16, max_window_layers=3),
    "qwen2_tiny_all_windows": Qwen2Config(**tiny, use_sliding_window=True, sliding_window=16, max_window_layers=0),
}
for name, config in new.items():
    with open(name + ".json", "w") as f:
        f.write(config.to_json_string(use_diff=not name.endswith("biases")))   # one with every key that there is

# As published: rope_theta and rope_scaling at the top, torch_dtype, remains of old versions.
old = {
    "llama2_7b": dict(_name_or_path="meta-llama/Llama-2-7b-hf", architectures=["LlamaForCausalLM"], bos_token_id=1, eos_token_id=2,
        hidden_act="silu", hidden_size=4096, initializer_range=0.02, intermediate_size=11008, max_position_embeddings=4096,
        model_type="llama", num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=32, pretraining_tp=1, rms_norm_eps=1e-05,
        rope_scaling=None, tie_word_embeddings=False, torch_dtype="float16", transformers_version="4.31.0.dev0", use_cache=True,
        vocab_size=32000),
    "llama3_1_8b": dict(architectures=["LlamaForCausalLM"], attention_bias=False, attention_dropout=0.0, bos_token_id=128000,
        eos_token_id=[128001, 128008, 128009], hidden_act="silu", hidden_size=4096, initializer_range=0.02, intermediate_size=14336,
        max_position_embeddings=131072, mlp_bias=False, model_type="llama", num_attention_heads=32, num_hidden_layers=32,
        num_key_value_heads=8, pretraining_tp=1, rms_norm_eps=1e-05,
        rope_scaling=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192, rope_type="llama3"),
        rope_theta=500000.0, tie_word_embeddings=False, torch_dtype="bfloat16", transformers_version="4.42.3", use_cache=True,
        vocab_size=128256),
    "llama3_2_1b": dict(architectures=["LlamaForCausalLM"], attention_bias=False, attention_dropout=0.0, bos_token_id=128000,
        eos_token_id=128001, head_dim=64, hidden_act="silu", hidden_size=2048, initializer_range=0.02, intermediate_size=8192,
        max_position_embeddings=131072, mlp_bias=False, model_type="llama", num_attention_heads=32, num_hidden_layers=16,
        num_key_value_heads=8, pretraining_tp=1, rms_norm_eps=1e-05,
        rope_scaling=dict(factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192, rope_type="llama3"),
        rope_theta=500000.0, tie_word_embeddings=True, torch_dtype="bfloat16", transformers_version="4.45.0.dev0", use_cache=True,
        vocab_size=128256),
    "smollm2_135m": {**dict(architectures=["LlamaForCausalLM"], attention_bias=False, attention_dropout=0.0, bos_token_id=1,
        eos_token_id=2, hidden_act="silu", hidden_size=576, initializer_range=0.041666666666666664, intermediate_size=1536,
        is_llama_config=True, max_position_embeddings=8192, mlp_bias=False, model_type="llama", num_attention_heads=9,
        num_hidden_layers=30, num_key_value_heads=3, pad_token_id=2, pretraining_tp=1, rms_norm_eps=1e-05, rope_interleaved=False,
        rope_scaling=None, rope_theta=100000, tie_word_embeddings=True, torch_dtype="bfloat16", transformers_version="4.42.3",
        use_cache=True, vocab_size=49152),
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}}},
    "old_type": dict(**tiny, model_type="llama", max_position_embeddings=2048, rms_norm_eps=1e-6,
        rope_scaling=dict(type="linear", factor=4.0), rope_theta=10000),
    "mistral_7b_v01": dict(architectures=["MistralForCausalLM"], bos_token_id=1, eos_token_id=2, hidden_act="silu", hidden_size=4096,
        initializer_range=0.02, intermediate_size=14336, max_position_embeddings=32768, model_type="mistral", num_attention_heads=32,
        num_hidden_layers=32, num_key_value_heads=8, rms_norm_eps=1e-05, rope_theta=10000.0, sliding_window=4096,
        tie_word_embeddings=False, torch_dtype="bfloat16", transformers_version="4.34.0.dev0", use_cache=True, vocab_size=32000),
    "qwen2_5_0_5b": dict(architectures=["Qwen2ForCausalLM"], attention_dropout=0.0, bos_token_id=151643, eos_token_id=151645,
        hidden_act="silu", hidden_size=896, initializer_range=0.02, intermediate_size=4864, max_position_embeddings=32768,
        max_window_layers=21, model_type="qwen2", num_attention_heads=14, num_hidden_layers=24, num_key_value_heads=2, rms_norm_eps=1e-06,
        rope_theta=1000000.0, sliding_window=32768, tie_word_embeddings=True, torch_dtype="bfloat16", transformers_version="4.43.1",
        use_cache=True, use_sliding_window=False, vocab_size=151936),
}
for name, config in old.items():
    with open(name + ".json", "w") as f:
        json.dump(config, f, indent=2)

expected = {}
for name in [*new, *old]:
    with open(name + ".json") as f:
        config = json.load(f)
    config = AutoConfig.for_model(config["model_type"]).from_dict(config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    rope = type(model.model.rotary_emb)(config)   # on a real device
    state = dict(model.named_parameters())   # a tied head once
    layers = [layer.self_attn for layer in model.model.layers]
    eos = config.eos_token_id
    expected[name] = {
        "params": sum(p.numel() for p in state.values()),
        "inv_freq": [float(x) for x in rope.inv_freq],
        "eos": eos if isinstance(eos, list) else [] if eos is None else [eos],
        # Mistral's attention has the window for all layers, Qwen2's says it for each.
        "window": [getattr(a, "sliding_window", None) or (config.sliding_window if config.model_type == "mistral" else 0) or 0 for a in layers],
    }
    if "tiny" in name:
        expected[name]["tensors"] = {k: list(p.shape) for k, p in sorted(state.items())}

# llama.cpp's conversion of q and k: row r of the result is row rows[r] of the Hugging Face matrix.
expected["gguf_rows"] = {
    f"{heads}x{rows}": np.arange(rows).reshape(heads, 2, rows // heads // 2).swapaxes(1, 2).reshape(rows).tolist()
    for heads, rows in [(4, 64), (2, 32), (9, 576), (1, 2)]
}
with open("expected.json", "w") as f:
    json.dump(expected, f, separators=(",", ":"))
    f.write("\n")
