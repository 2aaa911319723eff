#!/usr/bin/env bash
# Make the folder in which the EXAMPLES of the man pages run: man_fixture.sh DIR.
#   model/       a tiny trained model (a Hugging Face folder) with the demo's tokenizer
#   adapter/     a PEFT folder on top of it
#   chats.jsonl  conversations    qa.jsonl  prompt and completion    text.txt  plain text
# Ends with 77 and the reason where a program that it needs is not built.
set -euo pipefail
for t in tune-tokenize tune-shard tune-train; do
	command -v "$t" >/dev/null || { echo "$t is not built"; exit 77; }
done
mkdir -p "$1"
cd "$1"
for w in red green blue sea sky sun moon star tree leaf stone river; do
	printf '{"messages": [{"role": "user", "content": "Repeat %s."}, {"role": "assistant", "content": "%s %s"}]}\n' $w $w $w >>chats.jsonl
	printf '{"prompt": "Repeat %s.", "completion": "%s %s"}\n' $w $w $w >>qa.jsonl
	printf 'The %s is here, and the %s is there.\n' $w $w >>text.txt
done
"$TUNE_TOP/configs/models/make_demo.sh" blank
tune-tokenize -q -m blank -o qa.tns qa.jsonl
tune-shard -q -o shards shard.seq_len=128 qa.tns
tune-train -q -o base model.init=random model.config=blank/config.json model.tokenizer=blank train.steps=2 shards >/dev/null
cp -RL base/latest model
tune-train -q -m model -o tuned lora.rank=4 train.steps=2 shards >/dev/null
cp -RL tuned/latest adapter
rm -rf blank base tuned shards qa.tns
