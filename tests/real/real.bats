load ../helper
# MODEL: SmolLM2-135M-Instruct's .gguf.  Goldens: transformers and peft in fp32 (tests/real/make.py).
G() { echo "$TUNE_TOP/tests/golden/real/$1"; }

# Losses within 1e-5 and gradient norms within 2e-4 (torch sums them in fp32) of the golden's, step by step.
near() { # METRICS METHOD
	jq -n -e --slurpfile got <(jq -c 'select(.event == "step")' "$1") --slurpfile want "$(G "losses_$2.json")" \
		'$want[0] as $w | ($got | length) == 20 and ([range(20)] | all(
			(($got[.].loss - $w[.].loss) | fabs) <= 1e-5 * $w[.].loss and
			(($got[.].grad_norm - $w[.].grad_norm) | fabs) <= 2e-4 * $w[.].grad_norm))' ||
		{ jq -c --slurpfile want "$(G "losses_$2.json")" 'select(.event == "step") | [.step, .loss, $want[0][.step - 1].loss]' "$1"; false; }
}

@test "logits of 8 prompts agree with transformers to 1e-3: from the GGUF, and from the HF folder made of it" {
	"$TUNE_TOP/${B:-build}/real/logits" "$MODEL" "$(G logits.json)"
	tune-ckpt convert -q --to hf --dtype fp32 -o hf "$MODEL"
	"$TUNE_TOP/${B:-build}/real/logits" hf "$(G logits.json)"
	tune-ckpt convert -q --to gguf --dtype fp32 -o again.gguf hf
	tune-ckpt diff again.gguf hf
}

@test "greedy answers of 64 tokens equal transformers', from the GGUF and from the HF folder" {
	jq -c '{prompt}' "$(G greedy.jsonl)" >prompts
	jq -r .completion "$(G greedy.jsonl)" >want
	tune-eval generate -q -m "$MODEL" model.dtype=fp32 generate.max_new_tokens=64 prompts | jq -r '.messages[-1].content' >got
	diff got want
	tune-ckpt convert -q --to hf --dtype fp32 -o hf "$MODEL"
	tune-eval generate -q -m hf model.dtype=fp32 generate.max_new_tokens=64 prompts | jq -r '.messages[-1].content' >got
	diff got want
}

@test "LoRA: the loss of 20 steps agrees with peft to 1e-5, from the same initial adapter and on the same batches" {
	tune-train -q -m "$MODEL" -o init lora.rank=8 lora.alpha=16 model.dtype=fp32 --stop-after 0 "$(G packs.tns)" >/dev/null || [ $? = 75 ]
	tune-train -q -m "$MODEL" -a init/latest -o run model.dtype=fp32 train.batch=1 train.steps=20 optim.lr=1e-3 optim.weight_decay=0.01 \
		schedule.warmup_steps=5 "$(G packs.tns)" >/dev/null
	near run/metrics.jsonl lora
}

@test "full fine-tuning: the loss of 20 steps agrees with PyTorch to 1e-5" {
	tune-train -q -m "$MODEL" -o run model.dtype=fp32 train.batch=1 train.steps=20 optim.lr=1e-4 optim.weight_decay=0.01 \
		schedule.warmup_steps=5 "$(G packs.tns)" >/dev/null
	near run/metrics.jsonl full
}

@test "the packs are those that tune-tokenize and tune-shard make of the rows" {
	rows=$TUNE_TOP/../shared/data/alpaca_en_demo.json
	[ -e "$rows" ] || skip "the rows are not here"
	jq -c '.[:500][]' "$rows" | tune-tokenize -q -m "$MODEL" -o - | tune-shard -q -o - shard.seq_len=256 shard.shuffle=false - |
		tune-stream head -n 20 | tune-stream check --json | jq -r .xxh64 >got
	tune-stream check --json "$(G packs.tns)" | jq -r .xxh64 | diff - got
}

@test "MUST-13 E1: log p of 30 continuations, and whether greedy says the same, agree with transformers to 1e-4 a token" {
	jq -c '{prompt, completion}' "$(G e1.jsonl)" >rows
	tune-eval loss -q -m "$MODEL" model.dtype=fp32 data.template=none data.eos=false --per-row rows >got
	jq -n -e --slurpfile got got --slurpfile want "$(G e1.jsonl)" '($got | length) == 30 and ([range(30)] | all(
		($got[.].tokens == $want[.].tokens) and ($got[.].greedy == $want[.].greedy) and
		(($got[.].logp - $want[.].logp) | fabs) <= 1e-4 * $want[.].tokens))'
}
