#!/bin/sh
# train.sh MODEL.gguf: SmolLM2-135M in fp32, one pack of 2048 tokens a step, every token trained; PEER=PYTHON runs PyTorch beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
model=$1 steps=${STEPS:-4}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Both read the same fp32 folder, so that no peer's time holds another format's dequantising.
tune-ckpt convert -q --dtype fp32 -o "$tmp/hf" "$model"
model=$tmp/hf
# Text of any kind: the tokens do not matter, only that there are 2048 in each pack, as the peer has.
awk 'BEGIN { x = 1; for (i = 0; i < 60000; i++) { x = x * 16807 % 2147483647; printf "%c%s", 97 + x % 26, x % 5 ? "" : " " } }' >"$tmp/text.txt"
tune-tokenize -q -m "$model" -o - "$tmp/text.txt" | tune-shard -q -o "$tmp/data" shard.seq_len=2048 shard.overlong=split shard.shuffle=false -
for method in full lora; do
	rank=0
	[ $method = full ] || rank=16
	start=$(date +%s.%N)
	tune-train -q -m "$model" -o "$tmp/$method" model.dtype=fp32 lora.rank=$rank lora.alpha=32 train.batch=1 train.steps="$steps" optim.lr=1e-4 "$tmp/data" |
		while read -r line; do echo "$(date +%s.%N) $line"; done >"$tmp/log"
	awk -v s="$start" -v m=$method '/"event":"step"/ { n++; if (n == 1) first = $1; last = $1; match($0, /"tokens":[0-9]+/);
		if (n > 1) tokens += substr($0, RSTART + 9, RLENGTH - 9); match($0, /"mem_bytes":[0-9]+/); mem = substr($0, RSTART + 12, RLENGTH - 12) }
		END { printf "tune %s: %.1f tokens/s, %.2f GB, first step done after %.1f s\n", m, tokens / (last - first), mem / 1073741824, first - s }' "$tmp/log"
	[ -z "${PEER:-}" ] || "$PEER" "$here/pytorch_train.py" "$model" $method "$steps" 2>/dev/null
done
