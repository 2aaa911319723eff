#!/usr/bin/env bash
# make_demo.sh DIR: the demo's model without its weights: config.json and a byte-level tokenizer, for model.init=random.
# 624 thousand parameters; 262 tokens: a token a byte (no merges: letters stay visible to the model), ChatML's marks and
# the three role names, which are special so that they match in the template's text only and cost one token each.
set -euo pipefail
umask 022
[ $# = 1 ] || { echo "usage: make_demo.sh DIR" >&2; exit 64; }
mkdir -p "$1"
cat >"$1/config.json" <<'END'
{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 262, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "hidden_act": "silu",
  "max_position_embeddings": 512, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "rope_scaling": null,
  "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true,
  "bos_token_id": null, "eos_token_id": 258, "pad_token_id": 256, "torch_dtype": "float32"
}
END
echo '{ "eos_token_id": 258, "pad_token_id": 256 }' >"$1/generation_config.json"
cat >"$1/tokenizer_config.json" <<'END'
{
  "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, "clean_up_tokenization_spaces": false,
  "add_bos_token": false, "add_eos_token": false, "bos_token": null, "eos_token": "<|im_end|>", "pad_token": "<|pad|>",
  "chat_template": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
}
END
# Byte b is id b, spelt as GPT-2's table does: printable Latin-1 as itself, the others as U+0100 and up.
awk 'BEGIN {
	n = split("<|pad|> <|im_start|> <|im_end|> user assistant system", special, " ")
	print "{\n  \"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n  \"added_tokens\": ["
	for (i = 1; i <= n; i++)
		printf "    {\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}%s\n", 255 + i, special[i], i < n ? "," : ""
	print "  ],\n  \"normalizer\": null,"
	print "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true},"
	print "  \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, \"use_regex\": true},"
	print "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true},"
	print "  \"model\": {\n    \"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,"
	print "    \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n    \"vocab\": {"
	for (b = 0; b < 256; b++)
		printf "      \"\\u%04x\": %d,\n", (b > 32 && b < 127) || (b > 160 && b != 173) ? b : 256 + other++, b
	for (i = 1; i <= n; i++)
		printf "      \"%s\": %d%s\n", special[i], 255 + i, i < n ? "," : ""
	print "    },\n    \"merges\": []\n  }\n}"
}' >"$1/tokenizer.json"
