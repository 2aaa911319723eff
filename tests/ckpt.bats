load helper
load tiny

# Copies of tiny models (tests/golden/ckpt), and a run of each kind made once.
setup_file() {
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	export G=$TUNE_TOP/tests/golden/ckpt F=$BATS_FILE_TMPDIR
	tiny_rows 24 >"$F/rows.jsonl"
	tune-tokenize -q -m "$G/llama" -o "$F/data" "$F/rows.jsonl"
	cp -R "$G/llama" "$F/base"
	tune-train -q -m "$F/base" -o "$F/full" train.steps=4 train.batch=2 save.every=2 "$F/data" >"$F/full.jsonl"
	tune-train -q -m "$F/base" -o "$F/lora" train.steps=2 train.batch=2 lora.rank=2 optim.lr=1e-2 "$F/data" >"$F/lora.jsonl"
}
prepare() {
	cp -R "$G/llama" "$G/qwen2" "$G/lora" "$G/rslora" .
	T=$TUNE_TOP/tests/tensors.py
}
j() { tune-ckpt inspect --json "$@"; }
largest() { jq -s 'map(.max_abs) | max'; }    # of diff --json
changed() { jq -r 'select(.equal | not) | .tensor'; }

@test "inspect: a model's family, sizes, parameters by dtype, tokenizer, template" {
	j llama | jq -e '.kind == "Hugging Face model" and .family == "llama" and .layers == 2 and .heads == 4 and .kv_heads == 2 and .head_dim == 16
		and .tensors == 21 and .parameters == 41632 and .fp32 == 41632 and .bytes == 166528 and .ids == 300 and .stop == [298, 296]
		and .template == "chatml" and .tokenizer == "byte-level BPE, gpt2" and (has("identity") | not)'
	j qwen2 | jq -e '.family == "qwen2" and .bf16 == .parameters and .biases == ["q k v"] and (.head | startswith("tied"))'
	run -0 tune-ckpt inspect llama qwen2
	[[ "$output" = *"parameters        41,632"* && "$output" = *"rope_scaling      llama3, factor 8, low 1, high 4, original 64"* ]]
}

@test "inspect: identity with --hash changes with any byte, not with the folder" {
	a=$(j --hash llama | jq -r .identity)
	[ ${#a} = 64 ]
	[ "$(j --hash "$G/llama" | jq -r .identity)" = "$a" ]
	python3 "$T" edit llama/model.safetensors f32 model.norm.weight 3 0.5
	[ "$(j --hash llama | jq -r .identity)" != "$a" ]
}

@test "inspect: adapters, tensor files, GGUF, and -v lists tensors" {
	j lora | jq -e '.kind == "PEFT adapter" and .rank == 4 and .scale == 1.5 and .base == "../llama" and .tensors == 28'
	j lora/adapter_model.safetensors | jq -e '.kind == "safetensors" and .tensors == 28'
	tune-ckpt -q convert -o l.gguf llama
	tune-ckpt -q convert -o a.gguf lora
	j l.gguf | jq -e '.kind == "GGUF model" and .family == "llama" and .rope_scaling == "llama3, factor 8, low 1, high 4, original 64"'
	j a.gguf | jq -e '.kind == "GGUF adapter" and .alpha == 6 and .tensors == 28'
	j -v qwen2 | jq -e '.list | length == 26 and .[0] == {name: "model.embed_tokens.weight", dtype: "bf16", shape: [312, 32]}'
	run -0 tune-ckpt inspect -v llama
	[[ "$output" = *"tensor          fp32  [312, 32]      lm_head.weight"* ]]
}

@test "inspect: a run and its checkpoints say where they came from" {
	j "$F/full" | jq -e '.kind == "run" and .steps == ["step-00000002", "step-00000004"] and .latest == "step-00000004" and .step == 4 and .family == "llama"'
	j "$F/full/steps/step-00000002" | jq -e '.kind == "checkpoint (Hugging Face model)" and .step == 2'
	base=$(j --hash "$F/base" | jq -r .identity)
	[ "$(j "$F/lora/latest" | jq -r .base_identity)" = "$base" ]
	j "$F/lora" | jq -e '.rank == 2 and .template == "chatml"'
}

@test "inspect: a model of an unknown family is shown, and said to be of no use here" {
	jq '.model_type = "mamba"' llama/config.json >c && mv c llama/config.json
	j llama | jq -e '.tensors == 21 and (.unsupported | contains("mamba")) and (has("family") | not)'
}

@test "a path that is not there is 66, what is no model 65" {
	run -66 --separate-stderr tune-ckpt inspect nothing
	[ "$stderr" = "tune-ckpt: cannot open 'nothing': there is no such file or folder" ]
	mkdir empty && echo hello >text
	run -65 tune-ckpt inspect empty
	[[ "$output" = *"'empty' is neither a model nor an adapter nor a run"* ]]
	run -65 tune-ckpt inspect text
	[[ "$output" = "tune-ckpt: text: not a safetensors file"* ]]
}

@test "usage errors are 64 and name the verb's options" {
	run -64 --separate-stderr tune-ckpt
	run -64 --separate-stderr tune-ckpt convert llama
	[ "${stderr_lines[0]}" = "tune-ckpt: convert needs -o" ]
	run -64 --separate-stderr tune-ckpt inspect --dtype bf16 llama
	[ "${stderr_lines[0]}" = "tune-ckpt: inspect takes no --dtype" ]
	run -64 --separate-stderr tune-ckpt diff llama
	[ "${stderr_lines[0]}" = "tune-ckpt: diff takes two models, found 1" ]
	run -64 --separate-stderr tune-ckpt convert --dtype fp8 -o out llama
	[ "${stderr_lines[0]}" = "tune-ckpt: --dtype 'fp8' is none of fp32, bf16, fp16 (q8_0 is for GGUF only)" ]
	run -64 tune-ckpt convert --to onnx -o out llama
	run -64 tune-ckpt convert --dtype q8_0 -o out llama
	run -64 tune-ckpt convert --to hf -o - llama
	run -64 tune-ckpt verify
	run -64 tune-ckpt verify --each - llama
	[ ! -e out ]
}

# ---- convert ----

@test "MUST-9 R7: HF -> GGUF fp32 -> HF is bit-identical, with GQA, heads wider than dim/heads, biases, tied and not" {
	tune-ckpt -q convert -o l.gguf llama
	tune-ckpt -q convert -o back l.gguf
	python3 "$T" same llama/model.safetensors back/model.safetensors
	tune-ckpt -q convert --dtype fp32 -o q32 qwen2
	tune-ckpt -q convert -o q.gguf q32
	tune-ckpt -q convert -o qback q.gguf
	python3 "$T" same q32/model.safetensors qback/model.safetensors
	[ "$(tune-ckpt diff llama l.gguf)" = "equal: 21 tensors" ]
}

@test "MUST-9 R7: bf16 and fp16 survive the way to GGUF and back" {
	for t in bf16 fp16; do
		tune-ckpt -q convert --dtype $t -o h llama
		tune-ckpt -q convert -o h.gguf h
		tune-ckpt -q convert --to hf -o back h.gguf
		python3 "$T" same h/model.safetensors back/model.safetensors
		rm -r h h.gguf back
	done
}

@test "MUST-9 R7 R8: a GGUF holds q by its heads, k by its kv heads in llama.cpp's order, and rope_freqs; qwen2 is not permuted" {
	tune-ckpt -q convert -o l.gguf llama
	python3 "$T" within "$G/gguf.safetensors" blk.0.attn_q.weight blk.1.attn_q.weight blk.0.attn_k.weight blk.1.attn_k.weight rope_freqs.weight l.gguf
	run ! python3 "$T" within llama/model.safetensors model.layers.0.self_attn.k_proj.weight l.gguf
	tune-ckpt -q convert -o q.gguf qwen2
	python3 "$T" within qwen2/model-00001-of-00002.safetensors model.layers.0.self_attn.q_proj.weight q.gguf ||
		python3 "$T" within qwen2/model-00002-of-00002.safetensors model.layers.0.self_attn.q_proj.weight q.gguf
}

@test "R8: the llama3 scaling comes back from a GGUF" {
	tune-ckpt -q convert -o l.gguf llama
	tune-ckpt -q convert -o back l.gguf
	jq -e '.rope_scaling | .rope_type == "llama3" and .factor == 8 and .low_freq_factor == 1 and .high_freq_factor == 4
		and .original_max_position_embeddings == 64' back/config.json
	jq -e '.rope_theta == 10000 and .rms_norm_eps == 1e-05' back/config.json
}

@test "R7: a merge straight to GGUF equals the merge converted" {
	tune-ckpt -q merge -a lora -o m
	tune-ckpt -q convert -o m1.gguf m
	tune-ckpt -q merge -a lora -o m2.gguf
	cmp m1.gguf m2.gguf
}

@test "K8 R10: a GGUF has the whole tokenizer, the same from either file" {
	tune-ckpt -q convert -o l.gguf llama
	tune-ckpt -q convert -o q.gguf qwen2
	for p in "llama l.gguf" "qwen2 q.gguf"; do
		set -- $p
		[ "$(j $1 | jq -c '[.ids, .tokenizer_sha256, .template, .stop, .bos_not_added]')" = "$(j $2 | jq -c '[.ids, .tokenizer_sha256, .template, .stop, .bos_not_added]')" ]
		printf 'the cat %s\nnaïve <|im_end|> 12345\t é\n' '<tool>' >text
		tune-tokenize --raw -m $1 text >a
		tune-tokenize --raw -m $2 text >b
		[ -s a ] && cmp a b
	done
	tune-ckpt -q convert -o back l.gguf
	[ "$(j back | jq -r .tokenizer_sha256)" = "$(j llama | jq -r .tokenizer_sha256)" ]
	jq -e '.eos_token_id == [298, 296] and .bos_token_id == 296' back/generation_config.json
	jq -e '.eos_token_id == [298, 296]' back/config.json
	[ "$(jq -r .chat_template back/tokenizer_config.json)" = "$(cat llama/chat_template.jinja)" ]
}

@test "K5: rows without a token are filled in a GGUF; more ids than rows are refused" {
	tune-ckpt -q convert -o l.gguf llama
	grep -q '\[PAD300\]' l.gguf && grep -q '\[PAD311\]' l.gguf
	run ! grep -q '\[PAD312\]' l.gguf
	python3 "$T" edit llama/model.safetensors rows model.embed_tokens.weight 290 rows lm_head.weight 290
	jq '.vocab_size = 290 | .eos_token_id = 2 | .bos_token_id = 1 | .pad_token_id = 1' llama/config.json >c && mv c llama/config.json
	run -65 --separate-stderr tune-ckpt -q convert -o small.gguf llama
	[ "$stderr" = "tune-ckpt: llama/tokenizer.json: the tokenizer has 300 ids, but the model's embedding only 290 rows" ]
	[ ! -e small.gguf ]
}

@test "Q8_0: matrices but for rows that are no whole blocks; close to the source" {
	tune-ckpt -q convert --dtype q8_0 -o l8.gguf llama
	j l8.gguf | jq -e '.q8_0 > 30000 and .fp16 == 3072 and .fp32 == 164 + 4'
	run -1 tune-ckpt diff --json llama l8.gguf
	[ "$(largest <<<"$output" | jq '. < 0.02 and . > 0')" = true ]
}

@test "numbers that the type can't hold are refused by tensor" {
	python3 "$T" edit llama/model.safetensors f32 model.layers.1.mlp.up_proj.weight 7 70000
	run -65 --separate-stderr tune-ckpt -q convert --dtype fp16 -o h llama
	[ "$stderr" = "tune-ckpt: llama: tensor 'model.layers.1.mlp.up_proj.weight' holds 70000, which fp16 can't; use bf16 or fp32" ]
	python3 "$T" edit llama/model.safetensors f32 model.layers.1.mlp.up_proj.weight 7 nan
	run -65 --separate-stderr tune-ckpt -q convert --dtype q8_0 -o h.gguf llama
	[[ "$stderr" = *"tensor 'model.layers.1.mlp.up_proj.weight' holds numbers that q8_0 can't"* ]]
	[ ! -e h ] && [ ! -e h.gguf ] && [ -z "$(ls -d ./*.tmp.* 2>/dev/null)" ]
}

@test "D10 R11 C8: HF -> HF carries the tokenizer's files byte for byte; config and tensors agree on the dtype" {
	run -0 --separate-stderr tune-ckpt convert --dtype bf16 -o h llama
	[ "$stderr" = "tune-ckpt: writing 'h': 21 tensors, 41,632 parameters, bf16, 83.3 kB" ]
	for f in tokenizer.json tokenizer_config.json chat_template.jinja generation_config.json; do cmp llama/$f h/$f; done
	[ "$(ls h)" = "$(printf '%s\n' chat_template.jinja config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json)" ]
	jq -e '.dtype == "bfloat16"' h/config.json
	j h | jq -e '.bf16 == .parameters'
	[ "$(jq -S 'del(.dtype)' h/config.json)" = "$(jq -S 'del(.dtype)' llama/config.json)" ]
	tune-ckpt -q convert -o same qwen2
	cmp same/config.json qwen2/config.json
	j same | jq -e '.bf16 == .parameters'
}

@test "C5: every file that is written says format pt" {
	tune-ckpt -q convert -o h qwen2
	tune-ckpt -q merge -a lora -o m
	for f in h/model.safetensors m/model.safetensors; do head -c 200 $f | grep -q '"__metadata__":{"format":"pt"}'; done
}

@test "equal inputs give equal bytes, in any folder" {
	tune-ckpt -q convert -o one.gguf llama
	mkdir sub && cp -R llama sub/other
	tune-ckpt -q convert -o two.gguf sub/other
	cmp one.gguf two.gguf
	tune-ckpt -q convert -o - --to gguf llama | cmp - one.gguf
}

@test "an existing output is 73 without --force, and stays until the new one is complete" {
	tune-ckpt -q convert -o out llama
	run -73 tune-ckpt -q convert -o out qwen2
	tune-ckpt diff out llama
	cp -R llama bad && python3 "$T" edit bad/model.safetensors f32 lm_head.weight 7 1e30
	run -65 tune-ckpt -q convert --force --dtype fp16 -o out bad
	tune-ckpt diff out llama
	tune-ckpt -q convert --force -o out qwen2
	tune-ckpt diff out qwen2
	[ -z "$(ls -d ./*.tmp.* 2>/dev/null)" ]
	run -74 tune-ckpt -q convert --to gguf -o /dev/full llama
	run -73 tune-ckpt -q convert -o missing/out.gguf llama
}

@test "S5: weights that are only a pickle are refused with the remedy" {
	mv llama/model.safetensors llama/pytorch_model.bin
	run -65 tune-ckpt convert -o h llama
	[[ "$output" = *"pickle"*"save_pretrained"* ]]
	mv lora/adapter_model.safetensors lora/adapter_model.bin
	cp "$G/llama/model.safetensors" llama/
	run -65 tune-ckpt merge -a lora -o m
	[[ "$output" = *"adapter_model.bin"*"can run code"* ]]
}

@test "MUST-9 C4: tie flag and lm_head" {
	# not tied, with a head: ok.  Not tied, without: refused, both facts named.
	tune-ckpt verify llama
	cp -R llama f && python3 "$T" edit f/model.safetensors drop lm_head.weight
	run -1 tune-ckpt verify f
	[[ "$output" = *tie_word_embeddings*lm_head.weight* ]]
	# tied, without a head: ok.  With the embedding's bytes: ok.  With others: refused.
	tune-ckpt verify qwen2
	cp -R llama t && jq '.tie_word_embeddings = true' llama/config.json >t/config.json
	run -1 tune-ckpt verify t
	[[ "$output" = *tie_word_embeddings*lm_head.weight* ]]
	python3 "$T" edit t/model.safetensors copy model.embed_tokens.weight lm_head.weight
	tune-ckpt verify t
	tune-ckpt -q convert -o t.gguf t
	j -v t.gguf | jq -e '.list | map(.name) | (index("token_embd.weight") >= 0) and (index("output.weight") == null)'
}

@test "C6: a byte too few or too many gets one verdict from every verb" {
	n=$(stat -c %s llama/model.safetensors)
	for cut in -1 1; do
		cp -R llama c
		truncate -s $((n + cut)) c/model.safetensors
		what="c/model.safetensors: header describes $n bytes, file has $((n + cut))"
		run -1 tune-ckpt verify c
		[ "$output" = "c: bad: $what" ]
		run -65 tune-ckpt inspect c
		[ "$output" = "tune-ckpt: $what" ]
		run -65 tune-ckpt convert -o x c
		[ "$output" = "tune-ckpt: $what" ]
		run -65 tune-ckpt diff c llama
		[ "$output" = "tune-ckpt: $what" ]
		rm -r c
	done
	tune-ckpt -q convert -o l.gguf llama
	truncate -s -100 l.gguf
	run -1 tune-ckpt verify l.gguf
	[[ "$output" = "l.gguf: bad: l.gguf: header describes "*" bytes, file has "* ]]
}

# ---- merge ----

@test "a GGUF is known by its bytes, whatever its name; verify sees what follows its last tensor; NaN is no loss" {
	tune-ckpt convert -q --to gguf -o plain llama
	tune-ckpt verify plain
	tune-ckpt inspect plain | grep -q '^tokenizer  *byte-level BPE, gpt2$'
	tune-ckpt convert -q --to hf -o back plain
	tune-ckpt diff llama back
	tune-eval loss -q -m plain "$F/rows.jsonl" | diff - <(tune-eval loss -q -m llama "$F/rows.jsonl")
	tune-train -q -m plain -o run train.steps=1 "$F/data" >/dev/null && tune-ckpt verify run
	head -c 100 /dev/zero >>plain
	run -1 tune-ckpt verify plain
	[[ "$output" == *"100 bytes follow the last tensor"* ]]
	run -64 tune-ckpt convert --to hf -o x.gguf llama
	python3 "$T" edit llama/model.safetensors f32 model.norm.weight 3 nan
	run -65 --separate-stderr tune-eval loss -q -m llama "$F/rows.jsonl"
	[[ "$stderr" == *"the loss is no number"* ]]
}

@test "MUST-8 R1: merge equals peft's, and changes the targets only" {
	tune-ckpt -q merge -a lora -o m
	run -1 tune-ckpt diff --json m "$G/lora.merged.safetensors"
	[ "$(largest <<<"$output" | jq '. < 1e-6')" = true ]
	run -1 tune-ckpt diff --json m llama
	[ "$(changed <<<"$output" | wc -l)" = 14 ]
	[ "$(changed <<<"$output" | sed 's/.*\.\([a-z]*_proj\)\.weight/\1/' | sort -u | tr '\n' ' ')" = "down_proj gate_proj k_proj o_proj q_proj up_proj v_proj " ]
	tune-ckpt verify m
	for f in tokenizer.json tokenizer_config.json chat_template.jinja generation_config.json config.json; do cmp llama/$f m/$f; done
}

@test "MUST-8 R1 R5: rslora's scale is alpha/sqrt(rank), on a bf16 base" {
	tune-ckpt -q merge -a rslora --dtype fp32 -o m
	run -1 tune-ckpt diff --json m/model.safetensors "$G/rslora.merged.safetensors"
	[ "$(largest <<<"$output" | jq '. < 1e-6')" = true ]
	tune-ckpt -q merge -a rslora -o b
	j b | jq -e '.bf16 == .parameters'
	run -1 tune-ckpt diff --json b qwen2
	[ "$(changed <<<"$output" | wc -l)" = 6 ]
}

@test "MUST-8 R1: sums are rounded once, to the type that is written" {
	tune-ckpt -q merge --dtype bf16 -a lora -o m
	for t in model.layers.0.self_attn.q_proj model.layers.1.mlp.down_proj; do
		python3 "$T" once llama/model.safetensors lora/adapter_model.safetensors m/model.safetensors $t 1.5
	done
}

@test "MUST-8 R1: the merged model scores as base and adapter do" {
	tune-ckpt -q merge -a "$F/lora" -o m
	a=$(tune-eval loss --json -m "$F/lora" "$F/rows.jsonl" | jq .loss)
	b=$(tune-eval loss --json -m m "$F/rows.jsonl" | jq .loss)
	c=$(tune-eval loss --json -m "$F/base" "$F/rows.jsonl" | jq .loss)
	jq -n -e "($a - $b | fabs) <= 1e-5 and ($a - $c | fabs) > 1e-4"
}

@test "R2: an adapter of lm_head is refused by name" {
	jq '.target_modules += ["lm_head"]' lora/adapter_config.json >c && mv c lora/adapter_config.json
	run -65 --separate-stderr tune-ckpt merge -a lora -o m
	[[ "$stderr" = *"'target_modules' holds 'lm_head', which is not supported"* ]]
	cp -R rslora tied && jq '.modules_to_save = ["lm_head"]' rslora/adapter_config.json >tied/adapter_config.json
	run -65 --separate-stderr tune-ckpt merge -a tied -o m
	[[ "$stderr" = *"lm_head and embed_tokens are one tensor"* ]]
	[ ! -e m ]
}

@test "R4: a renamed or missing tensor of an adapter is listed, nothing is written" {
	p=base_model.model.model.layers.1.mlp.up_proj.lora_A
	python3 "$T" edit lora/adapter_model.safetensors rename $p.weight $p.default.weight
	run -65 --separate-stderr tune-ckpt merge -a lora -o m
	[[ "$stderr" = *"tensor '$p.default.weight' belongs to no target"* ]]
	cp "$G/lora/adapter_model.safetensors" lora/
	python3 "$T" edit lora/adapter_model.safetensors drop $p.weight
	run -65 --separate-stderr tune-ckpt merge -a lora -o m
	[ "$stderr" = "tune-ckpt: lora: tensor '$p.weight' is missing" ]
	run -1 tune-ckpt verify lora
	[ ! -e m ]
}

@test "R5: keys of adapter_config.json that change the result are refused by name" {
	for e in '.use_dora = true' '.alpha_pattern = {"layers.1": 128}' '.rank_pattern = {"q_proj": 8}' '.lora_magic = 3' '.bias = "all"' '.lora_alpha = 0'; do
		jq "$e" "$G/lora/adapter_config.json" >lora/adapter_config.json
		key=$(sed 's/^\.\([a-z_]*\).*/\1/' <<<"$e")
		run -65 --separate-stderr tune-ckpt merge -a lora -o m
		[[ "$stderr" = *"$key"* ]]
		run -65 tune-ckpt convert -o a.gguf lora
	done
	[ ! -e m ] && [ ! -e a.gguf ]
}

@test "an adapter's base: relative to its folder, -m instead, none is 66, another one than the recorded is 65" {
	mkdir deep && mv lora deep/
	run -66 --separate-stderr tune-ckpt merge -a deep/lora -o m
	[[ "$stderr" = *"'../llama' of adapter 'deep/lora' is not at 'deep/lora/../llama'; give it with -m, and the adapter with -a"* ]]
	tune-ckpt -q merge -m llama -a deep/lora -o m
	run -65 --separate-stderr tune-ckpt merge -m qwen2 -a deep/lora -o m2
	[[ "$stderr" = *"tensor '"* ]]
	tune-ckpt -q merge -m llama -a "$F/lora" -o m3
	python3 "$T" edit llama/model.safetensors f32 model.norm.weight 0 2
	run -65 --separate-stderr tune-ckpt merge -m llama -a "$F/lora" -o m4
	[[ "$stderr" = *"was trained on another base model"* ]]
	run -65 tune-ckpt merge -a llama -o m4
	[ "$output" = "tune-ckpt: 'llama' is no PEFT folder: it has no adapter_config.json" ]
}

# ---- adapters to GGUF ----

@test "R7 R12: an adapter's GGUF has llama.cpp's names, alpha, and rows of q and k in its order" {
	run -0 --separate-stderr tune-ckpt convert -o a.gguf lora
	[ "$stderr" = "tune-ckpt: writing 'a.gguf': 28 tensors, 4,480 parameters, fp32, 17.9 kB" ]
	python3 "$T" within "$G/gguf.safetensors" blk.{0,1}.attn_{q,k}.weight.lora_{a,b} a.gguf
	j -v a.gguf | jq -e '.family == "llama" and .alpha == 6 and (.list | map(.name) | contains(["blk.0.attn_q.weight.lora_a", "blk.1.ffn_down.weight.lora_b"]))'
	for s in general.type adapter adapter.type lora adapter.lora.alpha; do grep -aq $s a.gguf; done
	tune-ckpt -q convert -o r.gguf rslora
	j r.gguf | jq -e '(.alpha - 6 * (3 | sqrt) | fabs) < 1e-5'
	tune-ckpt verify a.gguf r.gguf
	run -65 tune-ckpt merge -m llama -a a.gguf -o m
	run -65 --separate-stderr tune-ckpt convert --to hf -o m a.gguf
	[ "$stderr" = "tune-ckpt: 'a.gguf' is an adapter as GGUF, which is written but not read here; give the PEFT folder" ]
}

@test "an adapter's conversion needs its base's config only; to hf is refused with the remedy" {
	rm llama/model.safetensors
	tune-ckpt -q convert -o a.gguf lora
	run -65 tune-ckpt convert --to hf -o m lora
	[[ "$output" = *"merge makes a model of it"* ]]
	run -64 tune-ckpt convert --dtype q8_0 -o b.gguf lora
	run -64 tune-ckpt convert -m llama -o b.gguf qwen2
}

# ---- verify ----

@test "verify: good ones, with what was read" {
	run -0 tune-ckpt verify llama qwen2 lora "$G/gguf.safetensors" "$F/full" "$F/lora/latest"
	[ "${lines[0]}" = "llama: ok (21 tensors, 166.5 kB)" ]
	[ "${#lines[@]}" = 6 ]
	tune-ckpt verify --json llama | jq -e '. == {path: "llama", ok: true, tensors: 21, bytes: 166528}'
	run -66 tune-ckpt verify nothing llama
	[ "${lines[0]}" = "nothing: bad: cannot open 'nothing': there is no such file or folder" ]
	[[ "${lines[1]}" = "llama: ok ("* ]]
}

@test "verify: a checkpoint whose file has one changed bit, a missing or an unfinished one" {
	cp -R "$F/full" run
	d=run/steps/step-00000004
	for f in model.safetensors state/optim.safetensors tokenizer.json; do
		cp $d/$f keep
		printf '\1' | dd of=$d/$f bs=1 seek=2000 conv=notrunc status=none
		run -1 tune-ckpt verify $d
		[[ "$output" = "$d: bad: $d: file '$f' is damaged: its hash is "* ]]
		run -1 tune-ckpt verify run
		cp keep $d/$f
		tune-ckpt verify run
	done
	mv $d/state/state.json kept
	run -1 tune-ckpt verify $d
	[ "$output" = "$d: bad: $d: file 'state/state.json' is missing" ]
	mv kept $d/state/state.json
	mv $d/tune.json kept
	run -1 tune-ckpt verify run
	[[ "$output" = *"it is not a complete checkpoint"* ]]
	run -1 tune-ckpt verify $d
	[[ "$output" = *"it is not a complete checkpoint"* ]]
	jq '.files = {}' kept >$d/tune.json
	run -1 tune-ckpt verify $d
	[[ "$output" = *"it lists no file" ]]
	echo '{' >$d/tune.json
	tune-ckpt inspect $d | grep '^broken '
	rm $d/tune.json
	run -1 tune-ckpt verify --json run llama
	jq -s -e '.[0].ok == false and (.[0].why | length > 0) and .[1].ok' <<<"$output"
}

@test "R6: an adapter without numbers, numbers that are NaN" {
	python3 "$T" edit lora/adapter_model.safetensors rows base_model.model.model.layers.0.mlp.up_proj.lora_A.weight 0
	run -1 tune-ckpt verify lora
	[[ "$output" = *"up_proj.lora_A.weight' has no elements"* ]]
	cp -R "$G/lora" nan
	python3 "$T" edit nan/adapter_model.safetensors f32 base_model.model.model.layers.0.mlp.up_proj.lora_A.weight 0 nan
	run -65 tune-ckpt merge -m llama -a nan -o m
	[[ "$output" = *"lora_A.weight' holds 1 numbers that are NaN or Inf" ]] && [ ! -e m ]
	python3 "$T" edit llama/model.safetensors f32 model.norm.weight 0 inf f32 model.norm.weight 5 nan
	run -1 tune-ckpt verify llama
	[ "$output" = "llama: bad: llama/model.safetensors: tensor 'model.norm.weight' holds 2 numbers that are NaN or Inf" ]
}

@test "S2: an index that leads out of the folder is refused by every verb" {
	jq '.weight_map["model.norm.weight"] = "../llama/model.safetensors"' qwen2/model.safetensors.index.json >c
	mv c qwen2/model.safetensors.index.json
	run -1 tune-ckpt verify qwen2
	[[ "$output" = *"'model.norm.weight': '../llama/model.safetensors' is not the name of a file of this folder" ]]
	run -65 tune-ckpt convert -o x qwen2
	run -65 tune-ckpt inspect qwen2
}

@test "verify --each -: lines pass through, each save is checked" {
	run -0 --separate-stderr tune-ckpt verify --each - <"$F/full.jsonl"
	[ "$(jq -c 'select(.event != "verify")' <<<"$output")" = "$(cat "$F/full.jsonl" | jq -c .)" ]
	[ "$(jq -c 'select(.event == "verify") | [.step, .ok]' <<<"$output" | tr '\n' ' ')" = "[2,true] [4,true] " ]
	cp -R "$F/full" run
	printf '{"event":"save","step":4,"path":"run/steps/step-00000004"}\nnot json\n{"event":"save","step":1,"path":"run/gone"}\n' >log
	printf '\1' | dd of=run/steps/step-00000004/model.safetensors bs=1 seek=2000 conv=notrunc status=none
	run -1 --separate-stderr tune-ckpt verify --each - <log
	[ "$(head -1 log)" = "${lines[0]}" ] && [ "${lines[2]}" = "not json" ]
	jq -e '.event == "verify" and .ok == false and (.why | contains("damaged"))' <<<"${lines[1]}"
	jq -e '.ok == null and .step == 1' <<<"${lines[4]}"
}

@test "verify --each - follows a run through a pipe" {
	tune-train -q -m "$F/base" -o run train.steps=2 train.batch=2 save.every=1 "$F/data" | tune-ckpt verify --each - >log
	[ "$(jq -c 'select(.event == "verify") | [.step, .ok]' log | tr '\n' ' ')" = "[1,true] [2,true] " ]
	tail -1 log | jq -e '.event == "end"'
}

# ---- diff ----

@test "diff: equal is 0; values, dtypes, shapes and names are 1, and said" {
	run -0 tune-ckpt diff llama "$G/llama"
	[ "$output" = "equal: 21 tensors" ]
	cp -R llama b
	python3 "$T" edit b/model.safetensors f32 model.norm.weight 3 0.5
	run -1 tune-ckpt diff llama b
	[[ "${lines[0]}" = "model.norm.weight: 1 of 32 differ, max abs "*"0.5), max rel "* ]]
	[ "${lines[1]}" = "1 tensor differs" ] && [ "${#lines[@]}" = 2 ]
	tune-ckpt -q convert --dtype fp32 -o q32 qwen2
	run -1 tune-ckpt diff qwen2 q32
	[ "${lines[0]}" = "model.embed_tokens.weight: dtype bf16 and fp32, equal values" ]
	run -1 tune-ckpt diff llama qwen2
	[[ "$output" = *"lm_head.weight: only in A"* && "$output" = *"q_proj.bias: only in B"* && "$output" = *"q_proj.weight: shape [64, 32] and [32, 32]"* ]]
	run -1 tune-ckpt diff lora rslora
	run -0 tune-ckpt diff -v lora "$G/lora"
	[ "${#lines[@]}" = 29 ]
	run -1 tune-ckpt diff --json llama b
	jq -e '. == {tensor: "model.norm.weight", equal: false, a: {dtype: "fp32", shape: [32]}, b: {dtype: "fp32", shape: [32]}, differ: 1,
		max_abs: .max_abs, max_rel: .max_rel} and .max_abs > 0' <<<"$output"
	run -66 tune-ckpt diff llama nothing
}

@test "diff: NaN equals NaN, and differs from a number" {
	python3 "$T" edit llama/model.safetensors f32 model.norm.weight 0 nan
	tune-ckpt diff llama llama
	tune-ckpt -q convert -o l.gguf llama
	[ "$(tune-ckpt diff llama l.gguf)" = "equal: 21 tensors" ]
	run -1 tune-ckpt diff --json llama "$G/llama"
	jq -e '.tensor == "model.norm.weight" and .differ == 1 and .max_abs == null' <<<"$output"
}

@test "a full standard output is 74, a reader that leaves is silent" {
	run -74 bash -c 'tune-ckpt inspect llama >/dev/full'
	run -0 --separate-stderr bash -c 'tune-ckpt inspect -v llama qwen2 llama qwen2 | head -1'
	[ -z "$stderr" ]
}

@test "a rope scaling of any original length comes back from a GGUF; what can't is said, and so is a window" {
	for n in 48 6000; do
		cp -R llama m$n
		jq ".rope_parameters.original_max_position_embeddings = $n" m$n/config.json >c && mv c m$n/config.json
		run -0 tune-ckpt -q convert -o m$n.gguf m$n
		[ -z "$output" ]
		tune-ckpt inspect --json m$n.gguf | jq -e ".rope_scaling == \"llama3, factor 8, low 1, high 4, original $n\""
	done
	cp -R llama odd
	jq '.rope_parameters.low_freq_factor = 1.5' odd/config.json >c && mv c odd/config.json
	run -0 tune-ckpt -q convert -o odd.gguf odd
	[[ "$output" == *"warning: this rope scaling can't be read back"* ]]
	cp -R llama win
	jq '.model_type = "mistral" | .architectures = ["MistralForCausalLM"] | .sliding_window = 16 | .rope_parameters = {rope_type: "default", rope_theta: 10000} | del(.attention_bias, .mlp_bias)' win/config.json >c && mv c win/config.json
	run -0 tune-ckpt -q convert -o win.gguf win
	[[ "$output" == *"warning: llama.cpp attends to all tokens"*"window of 16"* ]]
}
