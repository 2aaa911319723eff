load helper
load tiny

# One model, rows and shards for the whole file; every test works on copies or its own RUN.
setup_file() {
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	export F=$BATS_FILE_TMPDIR
	tiny_model "$F/model"
	tiny_rows 60 >"$F/rows.jsonl"
	tiny_data "$F/model" "$F/rows.jsonl" "$F/data" shard.val_fraction=0.1
	tune-tokenize -q -m "$F/model" -o "$F/rows.tns" "$F/rows.jsonl"
	tune-train -q -m "$F/model" model.init=random model.dtype=fp32 -o "$F/init" --stop-after 0 "$F/data" >/dev/null || [ $? = 75 ]
	export BASE=$F/init/latest
}
# t RUN ARGS...: a short run with settings that every test starts from
t() {
	local run=$1
	shift
	tune-train -q -m "$BASE" -o "$run" train.batch=4 optim.lr=1e-3 "$@" "$F/data" >/dev/null
}

@test "a run writes a folder that other tools read, config, metrics and links" {
	t run train.epochs=1 save.every=2
	[ -L run/latest ] && [ -e run/latest/model.safetensors ] && [ -e run/latest/tokenizer.json ] && [ -e run/latest/config.json ]
	[ "$(readlink run/latest)" = "steps/$(ls run/steps | tail -1)" ]
	tune-ckpt verify run
	[ "$(event step run/metrics.jsonl | wc -l)" -ge 2 ]
	[ "$(event end run/metrics.jsonl | jq -r .why)" = done ]
	event step run/metrics.jsonl | jq -e 'has("step") and has("epoch") and has("loss") and has("lr") and has("grad_norm") and has("tokens")
		and has("trained_tokens") and has("tokens_per_s") and has("mem_bytes")' >/dev/null
	tune validate run/config.yaml
	# tune-run(5) names every member
	{ jq -r 'keys[]' run/metrics.jsonl run/latest/state/state.json run/latest/tune.json; } | sort -u >members
	[ "$(wc -l <members)" -gt 30 ]
	while read -r m; do grep -qw -- "$m" "$TUNE_TOP/man/tune-run.5" || { echo "$m"; false; }; done <members
}

@test "the loss falls" {
	t run train.steps=60 optim.lr=1e-2
	event step run/metrics.jsonl | jq -s -e '(.[-1].loss) < 0.6 * .[0].loss'
}

@test "MUST-11 C3: a run that stops at step k and resumes is bit for bit the run that never stopped (full, two epochs and more)" {
	t straight train.steps=20
	for k in 1 3 7 8 19; do
		run -75 t cut train.steps=20 --stop-after $k
		t cut train.steps=20 --resume
		[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
		cmp cut/latest/state/optim.safetensors straight/latest/state/optim.safetensors
		diff <(event step cut/metrics.jsonl | jq -c '[.step, .loss, .lr, .grad_norm, .epoch]') \
			<(event step straight/metrics.jsonl | jq -c '[.step, .loss, .lr, .grad_norm, .epoch]')
		rm -r cut
	done
}

@test "MUST-11 C3: the same with adapters, dropout and small micro-batches" {
	set -- lora.rank=4 lora.dropout=0.2 train.micro_tokens=128 train.steps=12
	t straight "$@"
	for k in 1 6 11; do
		run -75 t cut "$@" --stop-after $k
		t cut "$@" --resume
		[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
		rm -r cut
	done
}

@test "MUST-11: and in bf16, whose masters are kept" {
	set -- model.dtype=bf16 save.dtype=bf16 train.steps=10
	t straight "$@"
	run -75 t cut "$@" --stop-after 4
	t cut "$@" --resume
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
	cmp cut/latest/state/optim.safetensors straight/latest/state/optim.safetensors
}

@test "MUST-10 C1: kill -9 at random moments: latest always opens, and the resumed run ends with the same bits" {
	kills=${KILLS:-8} steps=$((60 * ${KILLS:-8})) hits=0   # make check-long: 50
	t straight train.steps=$steps
	for i in $(seq "$kills"); do
		was=$(readlink cut/latest || true)
		tune-train -q -m "$BASE" -o cut train.batch=4 optim.lr=1e-3 train.steps=$steps save.every=1 --resume "$F/data" >/dev/null 2>&1 3>&- &
		# every other one after it has saved, on a slow machine too
		for _ in $(seq 1200); do [ $((i % 2)) = 0 ] && [ "$(readlink cut/latest)" = "$was" ] || break; sleep 0.05; done
		sleep "0.$((RANDOM % 30))"
		kill -9 $! || true
		rc=0; wait $! || rc=$?
		[ $rc != 137 ] || hits=$((hits + 1))
		if [ -e cut/latest ]; then tune-ckpt verify "$(readlink -f cut/latest)"; fi
	done
	[ $hits = "$kills" ]   # none came after the end
	[ "$(jq .step cut/latest/state/state.json)" -ge $((kills / 2)) ]
	t cut train.steps=$steps --resume
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
	[ -z "$(ls cut/steps | grep tmp)" ]
}

@test "MUST-10 C1: a checkpoint's files are on the disk before it gets its name, and older ones go after latest has moved" {
	export SHIM_LOG=$PWD/log
	shim tune-train -q -m "$BASE" -o run train.batch=4 train.steps=2 save.every=1 save.keep=1 "$F/data" >/dev/null
	unset SHIM_LOG
	at() { grep -n -m 1 -- "$1" log | cut -d: -f1; }
	for step in 1 2; do
		named=$(at "^rename run/steps/step-0000000$step.tmp run/steps/step-0000000$step\$")
		for f in model.safetensors config.json tokenizer.json state/optim.safetensors state/state.json tune.json; do
			# tune.json and others get their own names first: the file or its temporary one
			n=$(at "^fsync .*/step-0000000$step.tmp/$f[.tmp0-9]* \$")
			[ "$n" -lt "$named" ] || { echo "$f of step $step: $n, $named"; false; }
		done
		[ "$(at "^fsync .*/run/steps \$")" ]
	done
	latest=$(grep -n '^rename run/latest.tmp.* run/latest$' log | tail -1 | cut -d: -f1)
	gone=$(at '^unlink .*/step-00000001.* model.safetensors$')
	[ "$named" -lt "$latest" ] && [ "$latest" -lt "$gone" ]
	[ ! -e run/steps/step-00000001 ] && tune-ckpt verify run
}

@test "MUST-10 C1: a run that went back before a damaged checkpoint keeps what it writes then" {
	t run train.steps=4 save.every=2
	printf x >>run/latest/config.json
	run -75 t run train.steps=4 save.every=2 save.keep=1 --resume --stop-after 1
	[ "$(readlink run/latest)" = steps/step-00000003 ] && tune-ckpt verify run/latest
	t run train.steps=4 save.every=2 save.keep=1 --resume
	[ "$(ls run/steps)" = step-00000004 ] && tune-ckpt verify run
}

@test "save.on_error=continue trains on, but a run whose last save failed is not done" {
	[ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=300k none small || skip "needs a mount"
	rc=0; tune-train -m "$BASE" -o small/run train.batch=4 train.steps=3 save.every=1 save.on_error=continue "$F/data" >/dev/null 2>err || rc=$?
	umount small
	[ $rc = 74 ]
	[ "$(grep -c 'is not saved, training goes on' err)" = 3 ]
}

@test "MUST-10 C1: a damaged newest checkpoint is passed over with a warning" {
	t run train.steps=4 save.every=2
	printf x >>run/latest/config.json
	run --separate-stderr -0 tune-train -m "$BASE" -o run train.batch=4 optim.lr=1e-3 train.steps=4 save.every=2 --resume "$F/data"
	[[ "$stderr" == *"passed over: "*"config.json"* ]]
	[[ "$stderr" == *"goes on after step 2"* ]]
	tune-ckpt verify run/latest
}

@test "MUST-10 C1: a full disk: 74 with bytes needed and free, the last good checkpoint intact, and the run goes on from it" {
	[ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=700k none small || skip "needs a mount"
	run --separate-stderr tune-train -m "$BASE" -o small/run train.batch=4 train.steps=9 save.every=1 save.keep=100 "$F/data"
	err=$stderr code=$status
	good=$(ls small/run/steps | tail -1)
	verified=0; tune-ckpt verify small/run/steps/"$good" && verified=1
	left=$(ls small/run/steps | grep -c tmp || true)
	mount -o remount,size=20m small
	again=0; tune-train -q -m "$BASE" -o small/run train.batch=4 train.steps=9 save.every=1 save.keep=100 --resume "$F/data" >/dev/null || again=$?
	last=$(readlink small/run/latest)
	umount small
	[ "$code" = 74 ] || [ "$code" = 73 ]
	[[ "$err" == *"No space left"* ]]
	[ "$verified" = 1 ] && [ "$left" = 0 ] && [ "$again" = 0 ] && [ "$last" = steps/step-00000009 ]
}

@test "MUST-1 L1: micro-batches do not change the loss or the gradient" {
	t a train.steps=3 train.batch=6
	t b train.steps=3 train.batch=6 train.micro_tokens=128
	jq -n -e --slurpfile a <(event step a/metrics.jsonl) --slurpfile b <(event step b/metrics.jsonl) \
		'[range(3)] | all(($a[.].loss - $b[.].loss | fabs) < 2e-6 * $a[.].loss and ($a[.].grad_norm - $b[.].grad_norm | fabs) < 1e-5 * $a[.].grad_norm)'
}

@test "the number of threads does not change a bit" {
	t one train.steps=3 -j 1
	t three train.steps=3 -j 3
	[ "$(weights one/latest)" = "$(weights three/latest)" ]
}

@test "recompute does not change a bit" {
	t a train.steps=3 train.recompute=on
	t b train.steps=3 train.recompute=off
	[ "$(weights a/latest)" = "$(weights b/latest)" ]
}

@test "MUST-4 O4: a step that is not finite changes nothing; three in a row end the run with 1, the last checkpoint untouched" {
	cp -rL "$BASE" poisoned
	size=$(stat -c %s poisoned/model.safetensors)
	printf '\0\0\300\177' | dd of=poisoned/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc status=none   # the last weight is NaN
	run -75 tune-train -q -m poisoned -o run train.batch=4 train.steps=10 --stop-after 0 "$F/data"
	before=$(weights run/latest)
	run -1 --separate-stderr tune-train -m poisoned -o run train.batch=4 train.steps=10 save.every=1 --resume "$F/data"
	[[ "$stderr" == *"not finite in 3 steps in a row"* ]]
	[ "$(event skip run/metrics.jsonl | wc -l)" = 3 ]
	event skip run/metrics.jsonl | jq -e '.rows | length > 0' >/dev/null
	[ "$(weights run/latest)" = "$before" ]
	run ! grep -q 'loss 0.0000' <<<"$stderr"
}

@test "two processes can't train in one run" {
	tune-train -q -m "$BASE" -o run train.batch=4 train.steps=2000 "$F/data" >/dev/null 2>&1 3>&- &
	p=$!
	for i in $(seq 50); do [ -e run/metrics.jsonl ] && break; sleep 0.1; done
	run -73 --separate-stderr t run train.steps=2000 --resume
	kill -9 $p; wait $p || true
	[[ "$stderr" == *"another tune-train is at work"* ]]
}

@test "X8: SIGTERM lets the step finish, saves and exits 75; --resume then ends with the same bits" {
	t straight train.steps=300
	tune-train -q -m "$BASE" -o run train.batch=4 optim.lr=1e-3 train.steps=300 "$F/data" >/dev/null 3>&- &
	p=$! code=0
	for i in $(seq 100); do [ -e run/metrics.jsonl ] && grep -q '"step":3,' run/metrics.jsonl && break; sleep 0.05; done
	kill -TERM $p
	wait $p || code=$?
	[ "$code" = 75 ]
	tune-ckpt verify run/latest
	t run train.steps=300 --resume
	[ "$(weights run/latest)" = "$(weights straight/latest)" ]
}

@test "a run that exists is refused with 73 without --resume; --resume without one starts afresh" {
	t run train.steps=2 --resume
	run -73 --separate-stderr t run train.steps=2
	[[ "$stderr" == *"--resume goes on"* ]]
}

@test "O7: another setting on a resume is 78 with both values; --extend lengthens the schedule" {
	run -75 t run train.steps=6 --stop-after 3
	run -78 --separate-stderr t run train.steps=6 train.seed=3 --resume
	[[ "$stderr" == *"train.seed: the run was made with 0, now it is 3"* ]]
	cp run/metrics.jsonl before
	run -78 --separate-stderr t run train.steps=6 lora.rank=4 --resume
	[[ "$stderr" == *"lora.rank: the run was made with 0, now it is 4"* ]]
	run -75 t adapter train.steps=6 --stop-after 3 lora.rank=4
	for rank in 8 0; do
		run -78 --separate-stderr t adapter train.steps=6 lora.rank=$rank --resume
		[[ "$stderr" == *"lora.rank: the run was made with 4, now it is $rank"* ]]
	done
	cmp run/metrics.jsonl before   # a run that is refused leaves no trace
	run -78 --separate-stderr t run train.steps=12 --resume
	[[ "$stderr" == *"--extend allows it"* ]]
	t run train.steps=12 --resume --extend
	[ "$(event step run/metrics.jsonl | tail -1 | jq .step)" = 12 ]
	t run train.steps=12 log.every=2 save.keep=7 train.threads=1 --resume --extend
	grep -q '^  steps: 12 ' run/config.yaml
}

@test "model.config is a config.json, and no other file of its folder" {
	cp "$F/model/config.json" other.json && cp -r "$F/model" m && mv other.json m/arch.json
	run -78 --separate-stderr tune-train -m "$F/model" model.init=random model.config=m/arch.json -o x train.steps=1 "$F/data"
	[[ "$stderr" == *"model.config"*"must be a config.json or the folder of one, found 'm/arch.json'"* ]]
}

@test "the base's folder may be moved while the run goes on; micro_tokens below a record are said" {
	cp -R "$F/model" base
	tune-train -m base -o run train.steps=3 train.batch=2 save.every=1 save.keep=3 train.micro_tokens=5 model.init=random "$F/data" 2>said |
		while read -r line; do [ ! -e base ] || [[ "$line" != *'"save"'* ]] || mv base moved; done
	[ ! -e base ] && [ "$(ls run/steps | wc -l)" = 3 ]
	cmp run/latest/tokenizer.json moved/tokenizer.json
	tune-ckpt verify run
	grep -q 'train.micro_tokens=5 is below the longest record: ' said
}

@test "D14 K5: data of another tokenizer is refused; so is a tokenizer with more ids than the model has rows" {
	cp -r "$F/model" other
	jq '.added_tokens[0].content = "<|other|>" | .model.vocab |= with_entries(if .key == "<|pad|>" then .key = "<|other|>" else . end)' \
		"$F/model/tokenizer.json" >other/tokenizer.json
	run -65 --separate-stderr t run "model.tokenizer=other"
	[[ "$stderr" == *"tokenizer"* ]]
	cp -rL "$BASE" small
	jq '.vocab_size = 200' small/config.json >c && mv c small/config.json
	run -65 --separate-stderr tune-train -q -m small -o run "$F/data"
	[[ "$stderr" == *"200"* ]]
	# a model that is whole, with fewer rows than its tokenizer has ids
	n=$(jq .vocab_size "$F/model/config.json")
	mkdir few && cp "$F"/model/tokenizer* few && jq '.vocab_size -= 1' "$F/model/config.json" >few/config.json
	run -65 --separate-stderr tune-train -q -m few model.init=random -o run train.steps=1 "$F/data"
	[[ "$stderr" == *"the tokenizer has $n ids, the model's embedding has $((n - 1)) rows"* ]]
}

@test "U5: settings that contradict each other are found before anything is opened" {
	for s in 'schedule.warmup_steps=3 schedule.warmup_ratio=0.1' 'model.init=random lora.rank=4' model.dtype=fp16 'optim.betas=[0.9]'; do
		run -78 tune-train -q -m nowhere -o r $s nothing
	done
	run -78 tune-train -q -m nowhere -o r optim.lrr=3 nothing
	run -78 --separate-stderr tune-train -q -m "$BASE" -o r save.best=true "$F/rows.tns" train.steps=3
	[[ "$stderr" == *"save.best"*"needs validation data"* ]]
	run -78 --separate-stderr t r eval.patience=2
	[[ "$stderr" == *"eval.patience"*"needs eval.every"* ]]
	run -78 --separate-stderr tune-train -q -m "$BASE" -o r "$F/rows.tns"
	[[ "$stderr" == *"train.steps"*"needed with a stream"* ]]
	run -78 --separate-stderr tune-train -q -m "$BASE" -o r train.steps=3 train.epochs=2 "$F/rows.tns"
	[[ "$stderr" == *"read once"* ]]
	run -78 t r model.dtype=fp16
	[ ! -e r ]
}

@test "usage errors are 64, a missing file 66, no such device 69" {
	run -64 tune-train -m "$BASE" -o r
	run -64 tune-train -o r "$F/data"
	run -64 tune-train -m "$BASE" "$F/data"
	run -66 tune-train -m "$BASE" -o r nowhere
	run -66 tune-train -m nowhere -o r "$F/data"
	run -69 t r --device cuda
}

@test "C10 U7: best survives rotation" {
	t run train.steps=8 optim.lr=0.5 schedule.name=constant optim.grad_clip=0 eval.every=2 save.every=2 save.keep=1 save.best=true
	best=$(event val run/metrics.jsonl | jq -s 'min_by(.loss).step')
	[ "$best" -lt 8 ]
	[ "$(ls run/steps | wc -l)" = 2 ] && tune-ckpt verify run
	[ "$(readlink run/best)" = "steps/step-$(printf %08d "$best")" ]
}

@test "C10 U7: best is the best; patience stops with 0 and says why" {
	t run train.steps=30 optim.lr=3e-2 eval.every=2 save.every=3 save.keep=1 save.best=true eval.patience=2
	[ -e run/best/model.safetensors ]
	best=$(event val run/metrics.jsonl | jq -s 'min_by(.loss).step')
	[ "$(readlink run/best)" = "steps/step-$(printf %08d "$best")" ]
	event end run/metrics.jsonl | jq -e '.why | test("patience|done")'
	mv run moved
	[ -e moved/best/model.safetensors ]
}

@test "a run that ran out of patience is complete: resumed, it trains nothing, but with more patience" {
	set -- train.steps=30 optim.lr=0.5 schedule.name=constant optim.grad_clip=0 eval.every=1 save.best=true
	t run "$@" eval.patience=2
	was=$(weights run/latest) n=$(event step run/metrics.jsonl | wc -l)
	[ "$n" -lt 30 ]
	t run "$@" eval.patience=2 --resume
	[ "$(weights run/latest)" = "$was" ] && [ "$(event step run/metrics.jsonl | wc -l)" = "$n" ]
	t run "$@" eval.patience=4 --resume
	[ "$(event step run/metrics.jsonl | wc -l)" -gt "$n" ]
}

@test "settings that say nothing in this run are said" {
	tiny_data "$F/model" "$F/rows.jsonl" noval
	run -0 --separate-stderr tune-train -q -m "$BASE" -o r train.steps=2 schedule.warmup_steps=5 eval.every=1 lora.targets=[q_proj] noval
	for w in "warmup of 5 steps is as long as the run" "eval.every has no effect" "lora.targets has no effect with lora.rank=0"; do
		[[ "$stderr" == *"warning: "*"$w"* ]]
	done
	run -64 t r2 --extend
	run -78 t r2 lora.targets=[q_prj]
}

@test "U3: to a file, stderr has plain lines: step, loss, lr, grad_norm, tok/s, ETA; no control bytes" {
	tune-train -m "$BASE" -o run train.batch=4 train.steps=3 "$F/data" >/dev/null 2>log
	grep -q 'step 3/3  loss .* lr .* grad_norm .* tok/s  ETA ' log
	run ! grep -q "$(printf '[\r\033]')" log
}

@test "a metrics reader that goes away does not end the run" {
	tune-train -m "$BASE" -o run train.batch=4 train.steps=30 "$F/data" 2>err | head -1 >/dev/null
	[ "${PIPESTATUS[0]}" = 0 ]
	grep -q "training goes on" err
	[ "$(event step run/metrics.jsonl | wc -l)" = 30 ]
}

@test "a stream trains as it comes; cut, it keeps the last whole batch and exits 65" {
	tune-train -q -m "$BASE" -o whole train.batch=4 train.steps=5 - <"$F/rows.tns" >/dev/null
	zstd -dqc "$F/rows.tns" >plain
	head -c $(($(stat -c %s plain) / 2)) plain >cut
	run -65 --separate-stderr tune-train -q -m "$BASE" -o part train.batch=4 schedule.name=constant - <cut
	[[ "$stderr" == *"truncated"* ]]
	tune-ckpt verify part/latest
}

@test "SIGTERM is seen while a stream's header, or the rest of a record, is waited for" {
	mkfifo f && exec 9<>f
	for part in 0 3060; do
		tune-stream cat "$F/rows.tns" | head -c $part >&9
		tune-train -q -m "$BASE" -o w$part train.batch=4 schedule.name=constant - <f >/dev/null 2>err 3>&- 9>&- &
		p=$! rc=0
		for _ in $(seq 100); do [ $part -gt 0 ] && [ ! -e w$part/metrics.jsonl ] || break; sleep 0.1; done
		sleep 0.5
		kill -TERM $p; wait $p || rc=$?
		[ $rc = 75 ]
	done
	exec 9>&-
	tune-ckpt verify w3060
}

@test "a stream's run that was stopped before its first step can go on" {
	tune-train -q -m "$BASE" -o straight train.batch=4 train.steps=3 - <"$F/rows.tns" >/dev/null
	run -75 tune-train -q -m "$BASE" -o cut train.batch=4 train.steps=3 --stop-after 0 - <"$F/rows.tns"
	tune-train -q -m "$BASE" -o cut train.batch=4 train.steps=3 --resume - <"$F/rows.tns" >/dev/null
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
}

@test "an indexed file with a record of another program, and shards of two tokenizers, are refused by name" {
	tune-stream cat --json "$F/rows.tns" | jq -c 'if .tag == "TUNE" then ., {tag: "note", text: "hi"} elif .tag == "TEND" then {tag, n: 61} else . end' | tune-stream encode >n.tns
	tune-train -q -m "$BASE" -o stream train.batch=4 train.steps=2 n.tns >/dev/null
	tune-stream index n.tns
	run -65 --separate-stderr tune-train -q -m "$BASE" -o r train.batch=4 n.tns
	[[ "$stderr" == *"n.tns: record 1 is a 'note' record"*"train on the file as a stream"* ]]
	run -65 tune-train -q -m "$BASE" --rows 1 n.tns
	cp -r "$F/data" two
	tune-stream cat --json "$F"/data/train-00000.tns | jq -c 'if .tag == "TUNE" then .tok.sha256 = "0" * 64 else . end' | tune-stream encode >x.tns
	tune-stream index -o two/train-00001.tns x.tns
	jq '.splits.train |= (.records *= 2 | .files += [.files[0] + {name: "train-00001.tns"} | del(.bytes)])' two/manifest.json >m && mv m two/manifest.json
	run -65 --separate-stderr tune-train -q -m "$BASE" -o r2 train.batch=4 two
	[[ "$stderr" == *"the tokenizers differ: that of two/train-00000.tns is "* ]]
}

@test "O7: a resume without the validation set, or with another model, is 78" {
	tiny_data "$F/model" "$F/rows.jsonl" v
	run -75 t val train.steps=4 data.val=v --stop-after 2
	run -78 --separate-stderr t val train.steps=4 --resume
	[[ "$stderr" == *"data.val: the run was made with"*"now it is (not set)"* ]]
	tiny_model wide && jq '.intermediate_size = 96' wide/config.json >c && mv c wide/config.json
	r() { local m=$1; shift; tune-train -q -m "$m" model.init=random -o rand train.batch=4 train.steps=4 "$@" "$F/data" >/dev/null; }
	run -75 r "$F/model" --stop-after 2
	run -78 --separate-stderr r wide --resume
	[[ "$stderr" == *"model.path"*"'wide' is another model than the run's"* ]]
	r "$F/model" --resume
	run -75 t full train.steps=4 --stop-after 2
	run -78 tune-train -q -m wide -o full train.batch=4 optim.lr=1e-3 train.steps=4 --resume "$F/data"
	cp -RL "$BASE" moved
	tune-train -q -m moved -o full train.batch=4 optim.lr=1e-3 train.steps=4 --resume "$F/data" >/dev/null
}

@test "E4 D10: generation_config.json goes along, wherever the tokenizer lies" {
	cp -RL "$BASE" m && mkdir tok && mv m/tokenizer* tok
	echo '{"eos_token_id": [3, 5]}' >m/generation_config.json
	tune-train -q -m m model.tokenizer=tok -o run train.batch=4 train.steps=1 "$F/data" >/dev/null
	cmp m/generation_config.json run/latest/generation_config.json
	cmp tok/tokenizer.json run/latest/tokenizer.json
}

@test "a stream that is resumed skips what was read and notices another stream" {
	tune-train -q -m "$BASE" -o straight train.batch=4 train.steps=8 - <"$F/rows.tns" >/dev/null
	run -75 tune-train -q -m "$BASE" -o cut train.batch=4 train.steps=8 --stop-after 3 - <"$F/rows.tns"
	tune-train -q -m "$BASE" -o cut train.batch=4 train.steps=8 --resume - <"$F/rows.tns" >/dev/null
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
	run -75 tune-train -q -m "$BASE" -o cut2 train.batch=4 train.steps=8 --stop-after 3 - <"$F/rows.tns"
	tiny_rows 61 | sed 1d >other.jsonl
	run -65 bash -c "tune-tokenize -q -m '$F/model' -o - other.jsonl | tune-train -q -m '$BASE' -o cut2 train.batch=4 train.steps=8 --resume -"
	[[ "$output" == *"are not those that the run was trained on"* ]]
}

@test "U6: --rows prints the files and lines of a step, and every row occurs once an epoch" {
	n=$(tune-train -m "$BASE" train.batch=4 --dry-run "$F/data" | sed -n 's/^steps *\([0-9]*\) of.*/\1/p')
	for s in $(seq "$n"); do tune-train -m "$BASE" train.batch=4 --rows "$s" "$F/data"; done >rows
	grep -q "rows.jsonl:[0-9]*  [0-9]* tokens, [0-9]* trained" rows
	[ "$(grep -o 'rows.jsonl:[0-9]*' rows | sort | uniq -d | wc -l)" = 0 ]
	[ "$(wc -l <rows)" = "$(tune-stream cat --json "$F"/data/train-*.tns | jq -s 'map(.docs // [] | length) | add')" ]
	tune-stream cat "$F/rows.tns" >plain.tns
	run -64 tune-train -m "$BASE" --rows 1 plain.tns
	[[ "$output" == *"--rows needs a shard folder or an indexed file"* ]]
}

@test "a signal is seen while a stream's writer pauses; an adapter of another base and another validation set are refused" {
	mkfifo f && exec 9<>f   # open for writing as long as the test runs
	tune-stream cat "$F/rows.tns" | head -c 2000 >&9
	tune-train -q -m "$BASE" -o idle train.batch=4 train.steps=100 - <f >/dev/null 2>err 3>&- 9>&- &
	for i in $(seq 100); do [ "$(event step idle/metrics.jsonl 2>/dev/null | wc -l)" -lt 2 ] || break; sleep 0.1; done
	kill -TERM $!
	rc=0; wait $! || rc=$?
	exec 9>&-
	[ $rc = 75 ]
	[ "$(jq .step idle/latest/state/state.json)" -ge 2 ]
	t a lora.rank=2 train.steps=2
	t other train.steps=2
	run -65 --separate-stderr tune-eval loss -q -m other -a a/latest "$F/rows.jsonl"
	[[ "$stderr" == *"was trained on another base model"* ]]
	run -65 tune-train -q -m other -a a/latest -o b train.steps=2 "$F/data"
	tune-eval loss -q -m "$BASE" -a a/latest "$F/rows.jsonl" >one
	tune-eval loss -q -m "$BASE" -a a "$F/rows.jsonl" | diff one -   # a run is its latest
	t c -a a train.steps=1
	head -20 "$F/rows.jsonl" >v1 && tail -20 "$F/rows.jsonl" >v2
	tiny_data "$F/model" v1 v1.d && tiny_data "$F/model" v2 v2.d
	run -75 t val train.steps=4 data.val=v1.d --stop-after 2
	run -78 --separate-stderr t val train.steps=4 data.val=v2.d --resume
	[[ "$stderr" == *"data.val: the run was made with"* ]]
	mv v1.d moved
	t val train.steps=4 data.val=moved --resume
}

@test "MUST-11: a resumed run keeps the types it began with, whatever its checkpoints are saved in" {
	tune-ckpt convert -q --to gguf --dtype q8_0 -o q8.gguf "$BASE"
	g() { local run=$1; shift; tune-train -q -m "${MODEL_:-q8.gguf}" -o "$run" train.batch=4 optim.lr=1e-3 train.steps=6 "$@" "$F/data" >/dev/null; }
	same() {
		g straight "$@"
		run -75 g cut "$@" --stop-after 3
		g cut "$@" --resume
		[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
		cmp cut/latest/state/optim.safetensors straight/latest/state/optim.safetensors
		[ "$(event start cut/metrics.jsonl | jq -r .dtype | sort -u | wc -l)" = 1 ]
		rm -r straight cut
	}
	same
	MODEL_=$BASE same save.dtype=bf16
}

@test "a validation that fails, and data without a trained token" {
	awk 'BEGIN { for (i = 0; i < 3000; i++) printf "word " }' >long.txt
	tune-tokenize -q -m "$F/model" --raw -o long.tns long.txt && tune-stream index long.tns
	run -65 --separate-stderr t run train.steps=3 data.val=long.tns
	[ "$(jq .step run/latest/state/state.json)" = 3 ]   # what was learned is kept
	jq -c '{messages: [{role: "user", content: .prompt}]}' "$F/rows.jsonl" | head -3 >none.jsonl
	tune-tokenize -q -m "$F/model" --raw -o raw.tns none.jsonl
	tune-stream cat --json raw.tns | jq -c 'if .mask then .mask |= map(0) else . end | del(.trained, .xxh64)' | tune-stream encode >untrained.tns
	run -65 --separate-stderr tune-train -q -m "$BASE" -o none train.steps=2 untrained.tns
	[[ "$stderr" == *"no token of the data is trained"* ]]
	[ ! -e none/latest ]
	run -65 --separate-stderr tune-eval loss -q -m "$BASE" untrained.tns
	[[ "$stderr" == *"no token of the data is scored"* ]]
	run -64 tune-train -q -m "$BASE" --rows 0 "$F/data"
}

@test "a pack of documents of one token runs; what is no step of ours stays in steps/; a cut line of metrics is ended" {
	printf 'hello world' >text
	tune-tokenize -q -m "$F/model" --raw -o - text | tune-stream cat --json | jq -c 'if .tag == "TOKS" then (. as $t | range(110) | $t + {seq: ., ids: [97], mask: [0]}), . + {seq: 110}
		elif .tag == "TEND" then {tag, n: 111} else . end' | tune-stream encode | tune-shard -q -o ones shard.seq_len=128 shard.min_trained=0 -
	[ "$(jq .splits.train.records ones/manifest.json)" = 1 ]
	tune-train -q -m "$BASE" -o one train.steps=1 ones >/dev/null
	t run train.steps=2 save.every=1
	mkdir run/steps/step-00000001-good run/steps/step-mine && printf '{"event":"st' >>run/metrics.jsonl
	t run train.steps=6 save.every=1 save.keep=1 --resume --extend
	[ -d run/steps/step-00000001-good ] && [ -d run/steps/step-mine ]
	[ "$(ls run/steps | grep -c '^step-[0-9]*$')" = 1 ]
	grep -v '^{"event":"st$' run/metrics.jsonl | jq -e . >/dev/null
}

@test "MUST-11: a resumed run keeps its micro-batches while less memory is free, and says so where it cannot" {
	need() { tune-train -m "$BASE" train.batch=4 train.micro_tokens="$1" --dry-run "$F/data" | awk '/^total/ { print int($2 * 1048576) }'; }
	set -- train.steps=6
	t straight "$@"
	micro=$(jq .micro_tokens straight/latest/state/state.json)
	[ "$(event start straight/metrics.jsonl | jq .micro_tokens)" = "$micro" ]
	run -75 t cut "$@" --stop-after 3
	cp -r cut small
	t cut "$@" --resume train.recompute=on
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
	run -0 --separate-stderr t small "$@" --resume train.memory="$(need $((micro / 2)))"
	[[ "$stderr" == *"smaller micro-batches than the run's"* ]]
	[ "$(jq .micro_tokens small/latest/state/state.json)" -lt "$micro" ]
}

@test "--dry-run --json is one object of numbers" {
	tune-train -m "$BASE" train.batch=4 --dry-run --json "$F/data" | jq -s -e 'length == 1 and (.[0] | .params > 0 and .steps > 0 and .batch == 4 and .planned_bytes > .weights_bytes and .seconds >= 0 and .device == "cpu")'
}

@test "--dry-run counts the last, short batch of an epoch as it is" {
	dry() { tune-train -m "$BASE" --dry-run --json "${@:2}" "$F/data" | jq -e ".epochs == $1"; }
	n=$(jq .splits.train.records "$F/data/manifest.json")
	dry 3 train.batch=$((n - 1)) train.epochs=3
	dry 1000000 train.batch=1000000000 train.epochs=1000000
	# 2.1 - 2 is more than 0.1 in binary
	steps() { tune-train -m "$BASE" --dry-run --json "${@:2}" ten | jq -e ".steps == $1"; }
	head -10 "$F/rows.jsonl" >ten.jsonl && tune-tokenize -q -m "$F/model" -o ten.tns ten.jsonl && tune-stream index -o ten ten.tns
	steps 21 train.batch=1 train.epochs=2.1
	steps 11 train.batch=1 train.epochs=1.1
	steps 5 train.batch=4 train.epochs=1.5
}

@test "schedule.warmup_ratio is rounded up, as in other trainers" {
	t run train.steps=14 schedule.warmup_ratio=0.1
	event step run/metrics.jsonl | jq -s -e '(.[1].lr - 5e-4 | fabs) < 1e-12 and (.[2].lr - 1e-3 | fabs) < 1e-12 and .[0].lr == 0'
}

@test "--dry-run prints the plan and writes nothing" {
	run -0 tune-train -m "$BASE" -o nothing --dry-run "$F/data"
	[[ "$output" == *"total"*"available"*"steps"*"time"* ]]
	[ ! -e nothing ]
}

@test "M1: a plan that does not fit is refused with 71 and says what would" {
	run -71 --separate-stderr t r train.memory=65536
	[[ "$stderr" == *"available"* ]]
	[ ! -e r/steps ]
}

@test "MUST-2 D1: pad is the end token, eight samples learned by heart, and every answer stops" {
	tiny_model m
	jq '.pad_token = .eos_token' m/tokenizer_config.json >c && mv c m/tokenizer_config.json
	tiny_rows 8 >r.jsonl
	tiny_data m r.jsonl d
	tune-train -q -m m model.init=random model.init_std=fan_in model.init_embed=0.1 -o run train.batch=8 train.steps=300 optim.lr=1e-2 d >/dev/null
	tune-eval generate -q -m run generate.max_new_tokens=40 r.jsonl >answers
	[ "$(jq -r .finish answers | sort | uniq -c | tr -s ' ')" = " 8 stop" ]
	[ "$(tune-eval match -q -m run r.jsonl)" = "match 100.00 %  (8 of 8)" ]
	tune-train -q -m run -o again train.steps=1 optim.lr=1e-6 'eval.prompts=[say 3]' generate.max_new_tokens=40 'generate.stop=[" is"]' d >/dev/null
	[ "$(event sample again/metrics.jsonl | jq -r .text)" = "the word" ]
}

@test "R4 R6: an adapter opens again; a renamed key is refused by name; nothing in it is empty" {
	t run lora.rank=4 train.steps=4
	tune-ckpt inspect run/latest >/dev/null
	[ "$(jq -r .r run/latest/adapter_config.json)" = 4 ]
	t more -a run/latest train.steps=2
	cp -rL run/latest bad
	rm -f bad/tune.json
	sed -i '1s/q_proj.lora_A/q_prox.lora_A/' bad/adapter_model.safetensors
	run -65 --separate-stderr t r2 -a bad train.steps=2
	[[ "$stderr" == *"q_pro"* ]]
	run -78 --separate-stderr t r3 -a run/latest lora.targets=[q_proj] train.steps=2
	[[ "$stderr" == *"lora.targets: are not those of the adapter in 'run/latest'"* ]]
	t r3 -a run/latest 'lora.targets=[down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj]' train.steps=1
}

@test "sample answers and validation on schedule" {
	t run train.steps=4 eval.every=2 'eval.prompts=[say 3, say 4]' generate.max_new_tokens=8
	[ "$(event sample run/metrics.jsonl | wc -l)" = 4 ]
	[ "$(event val run/metrics.jsonl | wc -l)" = 2 ]
}

@test "tune-train | tune-eval loss --each - | tune-ckpt verify --each - follows a run" {
	tune-train -q -m "$BASE" -o run train.batch=4 train.steps=4 save.every=2 "$F/data" |
		tune-eval loss -q --each - "$F/rows.jsonl" | tune-ckpt verify --each - >log
	[ "$(event save log | wc -l)" = 2 ]
	[ "$(event eval log | wc -l)" = 2 ]
	[ "$(event verify log | wc -l)" = 2 ]
	[ "$(event step log | wc -l)" = 4 ]
	event eval log | jq -e '.loss > 0' >/dev/null
}
