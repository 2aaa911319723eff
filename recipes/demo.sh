#!/usr/bin/env bash
# Watch a small model learn: nine word games from scratch, then a tenth (spelling) by LoRA.
# It is scored on questions it has never seen, before and after.  About two minutes on two cores.
. "$(dirname "$0")/lib.bash"
case ${1:-} in -h|--help) usage 'demo.sh [DIR [key=value]...]   (DIR: runs/demo; train.seed=N: another seed)' -h ;; esac
D=${1:-runs/demo}
set -- "${@:2}"
say() { printf '\n== %s\n' "$*" >&2; }
[ ! -e "$D" ] || [ -e "$D/rows/held_out_b.jsonl" ] || die "'$D' exists and holds no demo; give a new folder"
rm -rf "$D"
mkdir -p "$D"
say "1. A small Llama: a config.json and a byte-level tokenizer, and the questions"
run "$configs/models/make_demo.sh" "$D/model"
run "$here/demo_data.sh" "$D/rows"
say "2. From scratch: nine word games"
run "$here/pretrain.sh" demo_a "$D/model" "model.tokenizer=$D/model" "data.train=$D/rows/a.jsonl" "save.dir=$D/a" "$@"
say "3. Can it spell?  $(wc -l <"$D/rows/held_out_b.jsonl") held-out questions"
run $EVAL match -m "$D/a/export/hf" generate.max_new_tokens=16 "$D/rows/held_out_b.jsonl" | tee "$D/before.txt"
say "4. Fine-tune on spelling by LoRA, merge"
run "$here/sft.sh" demo_b "model.path=$D/a/export/hf" "data.train=$D/rows/b.jsonl" "save.dir=$D/b" "$@"
say "5. The same questions again, and the nine games"
run $EVAL match -m "$D/b/export/hf" generate.max_new_tokens=16 "$D/rows/held_out_b.jsonl" | tee "$D/after.txt"
run $EVAL match -m "$D/b/export/hf" generate.max_new_tokens=16 "$D/rows/held_out_a.jsonl" | tee "$D/games.txt"
say "6. Some answers, before and after"
head -4 "$D/rows/held_out_b.jsonl" >"$D/some.jsonl"; sed -n '5,9p' "$D/rows/held_out_a.jsonl" >>"$D/some.jsonl"
for m in a b; do
	$EVAL generate -q -m "$D/$m/export/hf" generate.max_new_tokens=16 "$D/some.jsonl" | jq -r '.messages[-1].content' >"$D/$m.txt"
done
paste <(jq -r .prompt "$D/some.jsonl") "$D/a.txt" "$D/b.txt" | awk -F'\t' '{ printf "  %-22s before: %-18s after: %s\n", $1, $2, $3 }'
say "7. The loss of the fine-tuning"
if command -v gnuplot >/dev/null; then "$here/plot.sh" "$D/b" | sed -n '1,19p'; fi
cat <<END

Held-out spelling: before $(tail -1 "$D/before.txt"), after $(tail -1 "$D/after.txt")
With a real model and your own chats (JSON Lines with "messages", or instruction and output):
    $here/download.sh HuggingFaceTB/SmolLM2-135M-Instruct models/smollm2
    $here/sft.sh smollm2_135m_lora model.path=models/smollm2 data.train=mine.jsonl
    $(command -v tune-eval) chat -m runs/smollm2_135m_lora
END
