load helper
load tiny

setup_file() {
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	export F=$BATS_FILE_TMPDIR
	tiny_model "$F/model"
	awk 'BEGIN { for (i = 1; i <= 50; i++) { printf "{\"prompt\": \"say %d\", \"completion\": \"", i; for (k = 0; k < i % 7; k++) printf "word "; print "end\"}" } }' >"$F/rows.jsonl"
}
tokens() { tune-tokenize -q -m "$F/model" -o - "$F/rows.jsonl"; }
packs() { tune-shard -q -o - shard.seq_len=128 shard.shuffle=false "$@" - | tune-stream check --json | jq -c '[.records, .xxh64]'; }

@test "a stage in Python gives the records and the hash of the built-in" {
	[ "$(wc -l <"$TUNE_TOP/tests/stage.py")" -le 15 ]
	tokens | packs shard.min_trained=12 >builtin
	tokens | "$TUNE_TOP/tests/stage.py" 12 | packs shard.min_trained=0 >python
	[ -s builtin ] && cmp builtin python
	[ "$(cat builtin)" != "$(tokens | packs shard.min_trained=0)" ]
}

@test "so does one jq expression between cat --json and encode" {
	tokens | packs shard.min_trained=12 >builtin
	tokens | tune-stream cat --json | jq -c 'select(.tag != "TOKS" or (.mask | add) >= 12)' | tune-stream encode | packs shard.min_trained=0 >jq
	[ -s builtin ] && cmp builtin jq
}

@test "a pipe that breaks off is an error at the next stage, which leaves nothing" {
	tokens >whole
	head -c 2000 whole >cut
	run -65 tune-shard -q -o out - <cut
	[[ "$output" == *"truncated"* ]]
	[ ! -e out ] && [ -z "$(ls -d out* 2>/dev/null)" ]
	run -65 bash -c 'tune-stream cat cut | tune-stream check'
	run -65 bash -c "false | tune-shard -q -o out -"
}

@test "a reader that stops early ends a writer quietly" {
	for i in $(seq 40); do cat "$F/rows.jsonl"; done >many.jsonl
	run bash -c "tune-tokenize -q -m '$F/model' -o - many.jsonl 2>err | head -c 1 >/dev/null; echo \${PIPESTATUS[0]}"
	[ "$output" = 141 ] && [ ! -s err ]
	tune-tokenize -q -m "$F/model" -o many.tns many.jsonl
	run bash -c 'tune-stream cat --json many.tns 2>err | head -1 >/dev/null; echo ${PIPESTATUS[0]}'
	[ "$output" = 141 ] && [ ! -s err ]
	run bash -c 'tune ls 2>err | head -1; echo ${PIPESTATUS[0]}'
	[ ! -s err ]
}

@test "a parent that ignores SIGPIPE does not make them noisy" {
	for i in $(seq 40); do cat "$F/rows.jsonl"; done >many.jsonl
	run bash -c "trap '' PIPE; tune-tokenize -q -m '$F/model' -o - many.jsonl 2>err | head -c 1 >/dev/null; echo \${PIPESTATUS[0]}"
	[ "$output" = 141 ] && [ ! -s err ]
}

@test "all tools in one pipe" {
	tune-train -q -m "$F/model" model.init=random -o init train.steps=1 --stop-after 0 - < <(tokens) >/dev/null || [ $? = 75 ]
	tokens | tune-shard -q -o - shard.seq_len=128 - | tune-train -q -m init -o run train.batch=1 train.steps=3 - |
		tune-eval loss -q --each - "$F/rows.jsonl" | tune-ckpt verify --each - >log
	[ "$(event eval log | wc -l)" = 1 ] && [ "$(event verify log | wc -l)" = 1 ]
}
