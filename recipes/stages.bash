# The stages of a run, for recipes that train; lib.bash comes first.
shards() { # OUT key=value... -- FILE...: rows -> token stream -> shard folder, made anew
	local out=$1 set=(); shift
	while [ "$1" != -- ]; do set+=("$1"); shift; done; shift; mkdir -p "$RUN"
	printf '+ %s ... %s | %s ... -o %s\n' "$TOKENIZE" "$*" "$SHARD" "$out" >&2
	$TOKENIZE "${args[@]}" -o - "$@" <&0 | $SHARD "${args[@]}" "${set[@]}" --force -o "$out" - &
	await || { rc=$?; rmdir "$RUN" 2>/dev/null || true; exit $rc; }
}
data() { # DATA: shards of data.train, or TUNE_DATA, a prepared folder; VAL: shards of data.val, if there is one
	local train val
	DATA=${TUNE_DATA:-$RUN/data} VAL=
	mapfile -t train < <(value data.train); mapfile -t val < <(value data.val)
	if [ -z "${TUNE_DATA:-}" ]; then
		[ -n "${train[*]}" ] || die "no data: give data.train=FILE (or TUNE_DATA=DIR, a prepared shard folder)"
		shards "$DATA" -- "${train[@]}"
	fi
	[ -n "${val[*]}" ] || return 0
	VAL=${val[0]}
	if [ ! -e "$VAL/manifest.json" ]; then
		VAL=$RUN/data-val
		shards "$VAL" shard.val_fraction=0 shard.shuffle=false shard.mix={} -- "${val[@]}"
	fi
	args+=("data.val=$VAL")
}
train() { run ${TUNE_LAUNCH:-} $TRAIN "${args[@]}" --resume $extend "$DATA" >/dev/null; }   # metrics: RUN/metrics.jsonl; exit 75: run again
export_run() { # what save.export names, from the last checkpoint
	local what model=$RUN/latest how=(convert) of=()
	if [ -e "$model/adapter_config.json" ]; then how=(merge) of=(-a); fi
	mkdir -p "$RUN/export"
	for what in $(value save.export); do
		case $what in
		hf) run $CKPT "${how[@]}" --to hf --force -o "$RUN/export/hf" "${of[@]}" "$model" ;;
		gguf) run $CKPT "${how[@]}" --to gguf --force -o "$RUN/export/model.gguf" "${of[@]}" "$model" ;;
		adapter) rm -rf "$RUN/export/adapter"; run cp -RL "$model" "$RUN/export/adapter"
			rm -rf "$RUN/export/adapter/state" "$RUN/export/adapter/tune.json" ;;
		adapter_gguf) run $CKPT convert --to gguf --force -o "$RUN/export/adapter.gguf" "$model" ;;
		esac
	done
	echo "done: $RUN (checkpoints in steps/, the result in export/; curves: $here/plot.sh $RUN)" >&2
}
