load helper
load tiny

setup_file() {
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	export F=$BATS_FILE_TMPDIR
	tiny_model "$F/model"
	tiny_rows 40 >"$F/rows.jsonl"
	tiny_data "$F/model" "$F/rows.jsonl" "$F/data"
	tune-train -q -m "$F/model" model.init=random -o "$F/init" --stop-after 0 "$F/data" >/dev/null || [ $? = 75 ]
	cp -rL "$F/init/latest" "$F/base"
	cat >"$F/lora.yaml" <<-END
		# a test
		shard: {seq_len: 128}
		train: {batch: 4, steps: 6}
		lora: {rank: 4}
		optim: {lr: 1e-3}
	END
}
prepare() { R=$TUNE_TOP/recipes; }

@test "recipes have at most 40 lines" {
	for f in "$TUNE_TOP"/recipes/*; do [ "$(wc -l <"$f")" -le 40 ] || { echo "$f"; false; }; done
}

@test "sft.sh: one folder, an export that loads, validation; run again it changes nothing" {
	run -0 --separate-stderr "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.dir=run shard.val_fraction=0.2 'save.export=[hf, gguf, adapter, adapter_gguf]'
	[[ "$stderr" == *"+ tune-tokenize"* ]]
	tune-ckpt verify run/latest run/export/hf run/export/model.gguf
	[ -e run/export/adapter/adapter_model.safetensors ] && [ -e run/export/adapter.gguf ]
	[[ "$output" == *"loss"* ]]
	before=$(weights run/latest)
	run -0 "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.dir=run shard.val_fraction=0.2
	[ "$(weights run/latest)" = "$before" ]
}

@test "sft.sh: a GGUF of an adapter run is the merged model; validation scores the trained adapter; --force spares other folders" {
	s() { "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" "$@"; }
	s save.dir=run 'save.export=[gguf]' 2>/dev/null >/dev/null
	[ "$(tune-ckpt inspect --json run/export/model.gguf | jq -r .kind)" = "GGUF model" ]
	s save.dir=more shard.val_fraction=0.2 model.adapter=run/latest train.steps=2 save.export=[] >got 2>/dev/null
	tune-eval loss -q -m more/latest more/data/val-*.tns | diff - got
	mkdir -p own/data && cp "$F/rows.jsonl" own/data/mine.jsonl
	run -73 s save.dir=own save.export=[]
	[ -e own/data/mine.jsonl ]
}

@test "sft.sh: interrupted it exits 75, and run again it goes on to the same end" {
	s() { "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" "$@" save.export=[]; }
	s save.dir=straight 2>/dev/null
	cat >stop.sh <<-'END'
		#!/bin/sh
		exec "$@" --stop-after 2
	END
	chmod +x stop.sh
	TUNE_LAUNCH=./stop.sh run -75 s save.dir=cut
	s save.dir=cut 2>/dev/null
	[ "$(weights cut/latest)" = "$(weights straight/latest)" ]
}

@test "sft.sh: a signal to the recipe stops the training, saved, with 75; a second one at work is 73; --extend goes on" {
	s() { "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.export=[] "$@"; }
	for sig in TERM USR1; do
		bash -c 'exec "$0" "$@"' "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.export=[] save.dir=$sig train.steps=100000 >/dev/null 2>&1 3>&- &
		p=$!
		for _ in $(seq 300); do ! grep -qs '"event":"step"' $sig/metrics.jsonl || break; sleep 0.1; done
		run -73 --separate-stderr s save.dir=$sig train.steps=100000
		[[ "$stderr" == *"another program is at work in '$sig'"* ]]
		kill -$sig $p
		rc=0; wait $p || rc=$?
		[ $rc = 75 ]
		flock -n $sig true       # nobody is left at work
		tune-ckpt verify $sig
	done
	s save.dir=run 2>/dev/null
	run -78 s save.dir=run train.steps=8
	s save.dir=run train.steps=8 --extend 2>/dev/null
	[ "$(readlink run/latest)" = steps/step-00000008 ]
}

@test "sft.sh: what can't be exported is found before anything is made; a data file that is missing leaves no folder" {
	s() { "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.dir=run "$@"; }
	run -78 --separate-stderr s save.export=ggfu
	[[ "$stderr" == *"save.export must be one of hf, gguf, adapter or adapter_gguf, found 'ggfu' (did you mean 'gguf'?)"* ]]
	run -78 --separate-stderr s lora.rank=0 'save.export=[hf, adapter_gguf]'
	[[ "$stderr" == *"save.export"*"'adapter_gguf' needs an adapter: lora.rank or model.adapter"* ]]
	[ ! -e run/steps ] && rm -rf run
	run -65 s data.train=gone.jsonl
	[ ! -e run ]
}

@test "a stage is replaced by another program" {
	cat >mine.sh <<-'END'
		#!/bin/sh
		echo used >>mine.log
		exec tune-tokenize "$@"
	END
	chmod +x mine.sh
	TUNE_TOKENIZE=./mine.sh "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" "data.train=$F/rows.jsonl" save.dir=run save.export=[] 2>/dev/null
	[ "$(cat mine.log)" = used ]
	TUNE_DATA=$F/data "$R/sft.sh" "$F/lora.yaml" "model.path=$F/base" save.dir=run2 save.export=[] 2>/dev/null
	[ ! -e run2/data ]
}

@test "pretrain.sh from a config's name, generate.sh from the run" {
	"$R/pretrain.sh" debug "$F/model" "model.tokenizer=$F/model" "data.train=$F/rows.jsonl" save.dir=run train.steps=3 2>/dev/null
	tune-ckpt inspect run/export/hf >/dev/null
	"$R/generate.sh" run "$F/rows.jsonl" generate.max_new_tokens=4 2>/dev/null | tune-tokenize -q -m "$F/model" -o - --on-error skip | tune-stream check
}

@test "demo.sh makes room only where a demo was" {
	mkdir mine && echo 1 >mine/thesis
	run -64 --separate-stderr "$R/demo.sh" mine
	[[ "$stderr" == *"'mine' exists and holds no demo"* ]]
	[ "$(cat mine/thesis)" = 1 ]
}

@test "the demo's held-out questions are never trained on" {
	"$R/demo_data.sh" rows
	jq -r .prompt rows/held_out_a.jsonl rows/held_out_b.jsonl | sort -u >held
	jq -r .prompt rows/a.jsonl rows/b.jsonl | sort -u >trained
	[ "$(comm -12 held trained | wc -l)" = 0 ]
	[ "$(wc -l <rows/a.jsonl)" = 42000 ] && [ "$(wc -l <rows/b.jsonl)" = 12800 ]
}

@test "plot.sh draws as text and into a file, drops what a resume redid, and says so without gnuplot" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	mkdir run
	for s in 1 2 3; do echo '{"event":"step","step":'$s',"loss":'$((9 - s))',"lr":0.001,"tokens_per_s":100}'; done >run/metrics.jsonl
	echo '{"event":"resume","step":1}' >>run/metrics.jsonl
	echo '{"event":"step","step":2,"loss":5,"lr":0.001,"tokens_per_s":100}' >>run/metrics.jsonl
	COLUMNS=80 "$R/plot.sh" run | grep -q "run loss"
	"$R/plot.sh" -o out.svg run run
	grep -q "<svg" out.svg
	mkdir bin && for p in bash sed dirname basename tr jq awk mktemp rm tput; do ln -s "$(command -v $p)" bin/; done
	PATH=$PWD/bin run -64 "$R/plot.sh" run
	[[ "$output" == *"gnuplot is not installed"* ]]
}

@test "download.sh: files checked, resumed, refused when damaged; the token is sent" {
	command -v curl >/dev/null || skip "no curl"
	mkdir hub && cp "$F"/base/*.json "$F"/base/*.safetensors hub/ && echo x >hub/model.bin
	python3 "$TUNE_TOP/tests/hub.py" hub port >hub.log 3>&- & server=$!
	for i in $(seq 50); do [ -s port ] && break; sleep 0.1; done
	export HF_ENDPOINT=http://127.0.0.1:$(cat port) HF_TOKEN=secret
	run -0 "$R/download.sh" org/name got
	ok=1; cmp got/model.safetensors hub/model.safetensors && [ ! -e got/model.bin ] && [ ! -e evil.json ] && [ ! -e got/evil.json ] || ok=0
	grep -q "Bearer secret" hub.log || ok=0
	head -c 1000 hub/model.safetensors >got/.model.safetensors.part; rm got/model.safetensors
	"$R/download.sh" org/name got 2>/dev/null; grep -q "bytes=1000-" hub.log || ok=0
	cmp got/model.safetensors hub/model.safetensors || ok=0
	rm got/model.safetensors; head -c 1000 /dev/zero >got/.model.safetensors.part
	run -65 "$R/download.sh" org/name got
	[[ "$output" == *"damaged"* ]] && [ ! -e got/model.safetensors ] || ok=0
	run -66 "$R/download.sh" other/name got2
	kill $server
	[ $ok = 1 ]
}

@test "setup.sh: usage" {
	run -64 sh "$TUNE_TOP/setup.sh"
	run -64 sh "$TUNE_TOP/setup.sh" nothing
	run -0 sh "$TUNE_TOP/setup.sh" --help
}

@test "make install puts programs, pages, recipes and configs where they find each other; uninstall removes them" {
	make -s -C "$TUNE_TOP" install DESTDIR="$PWD/d" >/dev/null
	PATH=$PWD/d/usr/local/bin:/usr/bin:/bin run -0 tune ls
	[[ "$output" == *"sft.sh"*"smollm2_135m_lora"* ]]
	PATH=$PWD/d/usr/local/bin:/usr/bin:/bin run -0 tune cp sft.sh mine.sh
	make -s -C "$TUNE_TOP" uninstall DESTDIR="$PWD/d" >/dev/null
	[ -z "$(find d -type f)" ]
}
