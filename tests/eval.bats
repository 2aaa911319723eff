load helper
load tiny

# A model that has learned eight answers by heart.
setup_file() {
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	export F=$BATS_FILE_TMPDIR
	tiny_model "$F/model"
	tiny_rows 8 >"$F/rows.jsonl"
	tiny_data "$F/model" "$F/rows.jsonl" "$F/data"
	tune-train -q -m "$F/model" model.init=random model.init_std=fan_in model.init_embed=0.1 -o "$F/run" train.batch=8 train.steps=300 optim.lr=1e-2 "$F/data" >/dev/null
}
e() { local verb=$1; shift; tune-eval "$verb" -q -m "$F/run" "$@"; }

@test "loss of rows, of their stream and of their shards is the same" {
	tune-tokenize -q -m "$F/model" -o rows.tns "$F/rows.jsonl"
	e loss --json "$F/rows.jsonl" >a
	e loss --json rows.tns >b
	e loss --json "$F/data" >c
	jq -s -e '.[0].tokens == .[1].tokens and .[1].tokens == .[2].tokens and (.[0].loss - .[1].loss | fabs) < 1e-6 and (.[0].loss - .[2].loss | fabs) < 1e-6' a b c
	jq -e '.loss < 0.1 and .greedy > 0.9 and .rows == 8 and has("tokenizer_sha256") and has("template_sha256") and has("stop_ids") and has("dtype")' a
}

@test "E2: scores do not depend on what else is in the batch" {
	e loss --per-row "$F/rows.jsonl" >all
	while read -r row; do echo "$row" | e loss --per-row - ; done <"$F/rows.jsonl" >single
	jq -n -e --slurpfile a all --slurpfile b single '[range(8)] | all(($a[.].logp - $b[.].logp | fabs) < 1e-6 and $a[.].tokens == $b[.].tokens)'
	tac "$F/rows.jsonl" >back
	e loss --per-row back >turned
	jq -n -e --slurpfile a all --slurpfile b turned '[range(8)] | all(($a[.].logp - $b[7 - .].logp | fabs) < 1e-6 and $a[.].tokens == $b[7 - .].tokens)'
}

@test "the last message is answered; --each goes on where a checkpoint is gone; scores carry their document's seq" {
	echo '{"messages":[{"role":"user","content":"say 1"},{"role":"assistant","content":"x"},{"role":"user","content":"say 4"}]}' >turns
	e generate generate.max_new_tokens=30 turns | jq -e '(.messages | length) == 4 and .messages[2].content == "say 4" and .messages[1].content == "x"'
	printf '{"event":"save","step":1,"path":"gone"}\n{"event":"save","step":2,"path":"%s"}\n' "$F/run/latest" |
		tune-eval loss -q --each - "$F/rows.jsonl" >log 2>err
	jq -s -e 'length == 4 and .[1].event == "eval" and (.[1].why | length) > 0 and .[3].loss < 0.1' log
	grep -q 'gone is not scored' err
	tune-tokenize -q -m "$F/model" -o - "$F/rows.jsonl" | tune-stream cat --json | jq -c 'if .seq then .seq += 7 else . end | del(.xxh64)' | tune-stream encode >moved.tns
	e loss --scores - moved.tns | tune-stream cat --json | jq -s -e 'map(select(.tag == "SCOR") | .seq) | .[1:] == [range(8; 15)]'
}

@test "a token stream or rows come from a pipe as from a file" {
	tune-tokenize -q -m "$F/model" -o t.tns "$F/rows.jsonl"
	e loss --json t.tns | jq -c '[.loss, .tokens, .rows]' >want
	e loss --json <t.tns | jq -c '[.loss, .tokens, .rows]' | cmp - want
	cat t.tns | e loss --json - | jq -c '[.loss, .tokens, .rows]' | cmp - want
	e loss --json <(cat t.tns) | jq -c '[.loss, .tokens, .rows]' | cmp - want
	e loss --json <(cat "$F/rows.jsonl") | jq -c '[.loss, .tokens, .rows]' | cmp - want
	e loss --json <"$F/rows.jsonl" | jq -c '[.loss, .tokens, .rows]' | cmp - want
}

# each record's seq and number of tokens
shape() { tune-stream cat --json "$@" | jq -c 'select(has("seq")) | [.seq, (.ids // .logp | length)]'; }

@test "scores stand beside their records: several inputs, packs, split documents, windows, cut contexts" {
	tune-tokenize -q -m "$F/model" -o t.tns "$F/rows.jsonl"
	e loss --scores two.tns t.tns t.tns
	tune-stream check two.tns
	shape t.tns t.tns | cmp - <(shape two.tns)
	tune-shard -q -o - shard.seq_len=12 shard.overlong=split t.tns >p.tns
	e loss --scores packs.tns p.tns
	tune-stream check packs.tns
	shape p.tns | cmp - <(shape packs.tns)
	cp -RL "$F/run/latest" small
	jq '.max_position_embeddings = 24' small/config.json >c && mv c small/config.json
	printf '{"text":"%060d"}\n' 7 >text.jsonl
	printf '{"prompt":"%060d","completion":"ab"}\n' 7 8 >cut.jsonl
	for f in text cut; do
		tune-tokenize -q -m small -o $f.tns $f.jsonl
		tune-eval loss -m small --json --scores $f.scor $f.jsonl >$f.json
		shape $f.tns | jq -s -e 'map(.[1]) | min > 24'
		shape $f.tns | cmp - <(shape $f.scor)
		tune-stream cat --json $f.scor | jq -s -e --slurpfile sum $f.json '[.[] | select(has("logp")) | .logp[]] | (map(select(. != 0)) | length == $sum[0].tokens)
			and (add + $sum[0].loss * $sum[0].tokens | fabs) < 1e-3'
	done
	jq -e '.cut == 2' cut.json
	# what is scored stands at its own place: the mask's
	tune-stream cat --json cut.scor | jq -c 'select(has("logp")) | [.logp[] | . != 0]' | cmp - <(tune-stream cat --json cut.tns | jq -c 'select(has("mask")) | [.mask[] | . == 1]')
}

@test "per-token scores are a stream whose sums are the rows'" {
	e loss --scores s.tns "$F/rows.jsonl" >/dev/null
	tune-stream check s.tns
	e loss --per-row "$F/rows.jsonl" | jq -c '.logp * 1000 | round' >want
	tune-stream cat --json s.tns | jq -c 'select(.tag == "SCOR") | .logp | add * 1000 | round' | cmp - want
	run -73 e loss --scores s.tns "$F/rows.jsonl"
}

@test "E6: a context longer than the window is cut and counted, an answer longer than it is left out; a text is scored once a token" {
	cp -rL "$F/run/latest" small && rm small/tune.json
	jq '.max_position_embeddings = 32' small/config.json >c && mv c small/config.json
	long=$(printf 'x%.0s' $(seq 100))
	printf '{"prompt": "%s", "completion": "ab"}\n{"prompt": "a", "completion": "%s"}\n' "$long" "$long" >rows
	run -0 tune-eval loss -m small --json rows
	[[ "$output" == *"1 contexts were longer"*"1 rows are left out"* ]]
	# what is kept is the first token (here BOS), and the end: as scored when cut by hand
	tune-stream cat --json <(tune-tokenize -q -m small -o - rows) | jq -c 'if .tag == "TOKS" and .seq == 0 then .ids = .ids[:1] + .ids[-31:] | .mask = .mask[:1] + .mask[-31:]
		elif .tag == "TEND" then {tag, n: 1} else select(.tag == "TUNE") end' | tune-stream encode >hand.tns
	jq -n -e --argjson a "$(tune-eval loss -q -m small --json hand.tns | jq .loss)" --argjson b "$(head -1 rows | tune-eval loss -q -m small --json - | jq .loss)" '$a == $b'
	printf '{"text": "%s"}\n' "$long" >text
	tune-eval loss -q -m small --json text | jq -e '.tokens == 100 and .rows == 1'   # 99 of the text, and its end
}

@test "E4: generate stops at every token that the files name, and its output is input again" {
	e generate generate.max_new_tokens=40 "$F/rows.jsonl" >answers
	[ "$(jq -r .finish answers | sort -u)" = stop ]
	[ "$(jq -r '.messages[-1].content' answers | head -1)" = "$(jq -r .completion "$F/rows.jsonl" | head -1)" ]
	tune-tokenize -q -m "$F/model" -o - answers | tune-stream check
	# whichever of several ids comes first ends the answer
	cp -RL "$F/run/latest" many
	is=$(printf '{"text":" is"}' | tune-tokenize -q -m "$F/model" data.eos=false -o - | tune-stream cat --json | jq '.ids // empty | .[-1]')
	eos=$(jq '.stop[0]' <<<"$(tune-ckpt inspect --json "$F/run/latest")")
	for ids in "[$eos, $is]" "[$is, $eos]"; do
		echo "{\"eos_token_id\": $ids}" >many/generation_config.json
		tune-eval generate -q -m many generate.max_new_tokens=40 "$F/rows.jsonl" | jq -s -e 'all(.finish == "stop" and (.messages[-1].content | test("^the word i?$")))'
	done
	e generate generate.max_new_tokens=2 "$F/rows.jsonl" | jq -s -e 'all(.finish == "length")'
	e generate 'generate.stop=[" is"]' generate.max_new_tokens=40 "$F/rows.jsonl" | jq -s -e 'all(.messages[-1].content == "the word")'
}

@test "sampling: a seed gives the same answers, another other ones; members of a row are carried" {
	jq -c '. + {id: input_line_number}' "$F/rows.jsonl" >rows
	s() { e generate generate.temperature=3 generate.max_new_tokens=20 "$@" rows; }
	s generate.seed=1 >a
	s generate.seed=1 -j 1 >b
	s generate.seed=2 >c
	cmp a b
	run ! cmp -s a c
	[ "$(jq .id a | paste -sd,)" = 1,2,3,4,5,6,7,8 ]
	s generate.top_k=1 | jq -r '.messages[-1].content' | head -1 | grep -q "the word is"
}

@test "match: the score, --min, rows and JSON" {
	[ "$(e match "$F/rows.jsonl")" = "match 100.00 %  (8 of 8)" ]
	sed 's/the word is/no/' "$F/rows.jsonl" >wrong
	e match --min 100 "$F/rows.jsonl"
	run -1 e match --min 50 wrong
	e match --per-row "$F/rows.jsonl" | jq -s -e 'length == 8 and all(.match and .answer == .reference)'
	e match --json wrong | jq -e '.match_percent == 0 and .rows == 8 and has("temperature")'
	echo '{"messages": [{"role": "user", "content": "hi"}]}' >none
	run -65 e match none
	[[ "$output" == *"none:1: no assistant message"* ]]
}

@test "chat without a terminal answers lines" {
	run -0 bash -c "printf 'say 3\n/reset\nsay 4\n/quit\n' | tune-eval chat -q -m '$F/run' generate.max_new_tokens=30"
	[ "${lines[0]}" = "the word is 9" ]
	[ "${lines[1]}" = "the word is 16" ]
	run -64 e chat file
}

@test "usage and bad input" {
	run -64 tune-eval
	run -64 tune-eval losss
	run -64 tune-eval loss "$F/rows.jsonl"
	run -66 tune-eval loss -m nowhere "$F/rows.jsonl"
	run -66 e loss nowhere.jsonl
	run -69 e loss --device cuda "$F/rows.jsonl"
	run -64 e loss --each - </dev/null
	run -64 e loss --each - - </dev/null
	run -64 e loss --each - --per-row "$F/rows.jsonl" </dev/null
	run -64 e loss --each - --scores s "$F/rows.jsonl" </dev/null
	run -66 e loss --each - gone.jsonl </dev/null
	printf 'GGUF' >a.gguf
	run -65 e loss -a a.gguf "$F/rows.jsonl"
	[[ "$output" == *"'a.gguf' is a GGUF file; an adapter is read from its PEFT folder only" ]]
	run -66 e loss -a gone "$F/rows.jsonl"
	mkdir bare && cp "$F/model/config.json" bare
	run -66 tune-train -m bare model.init=random -o x train.steps=1 "$F/data"
	[[ "$output" == *"model.tokenizer names one elsewhere"* ]]
	run -64 --separate-stderr e loss --min 3 "$F/rows.jsonl"
	[[ "$stderr" == *"--min is an option of match, not of loss"* ]]
	run -64 e match --each - "$F/rows.jsonl"
	run -64 e loss --per-row --scores - "$F/rows.jsonl"
	run --separate-stderr -0 tune-eval loss -m "$F/run" --scores - "$F/rows.jsonl"
	[[ "$stderr" == *"loss 0.0"*" over "*" tokens"* ]]
	printf '{"prompt": "a"\n' >bad
	run -65 e loss bad
	[[ "$output" == *"bad:1:"* ]]
	run -74 bash -c "tune-eval generate -q -m '$F/run' generate.max_new_tokens=3 '$F/rows.jsonl' >/dev/full"
}

@test "rows of the embedding that no token has are no text; special tokens in a prompt are what they are in a row" {
	# more rows than ids, and one of the padding rows the likeliest of all
	cp -RL "$F/run/latest" pad
	n=$(jq .vocab_size pad/config.json)
	python3 - pad "$n" <<-'END'
		import json, struct, sys
		d, n = sys.argv[1], int(sys.argv[2])
		raw = open(d + "/model.safetensors", "rb").read()
		k = struct.unpack("<Q", raw[:8])[0]
		head, data = json.loads(raw[8:8 + k]), raw[8 + k:]
		head.pop("__metadata__", None)
		out, body = {}, b""
		for name, t in sorted(head.items(), key=lambda x: x[1]["data_offsets"]):
		    part = data[t["data_offsets"][0]:t["data_offsets"][1]]
		    if t["shape"][0] == n:
		        part += b"".join(part[-4 * t["shape"][1]:] for _ in range(8)); t["shape"][0] += 8
		    out[name] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [len(body), len(body) + len(part)]}
		    body += part
		text = json.dumps(out).encode()
		open(d + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
		c = json.load(open(d + "/config.json")); c["vocab_size"] = n + 8
		json.dump(c, open(d + "/config.json", "w"))
	END
	rm -f pad/tune.json
	tune-eval generate -q -m pad generate.temperature=100 generate.seed=3 generate.max_new_tokens=400 "$F/rows.jsonl" | jq -s -e 'length == 8'
	tune-train -q -m pad -o t train.steps=1 'eval.prompts=[say 1]' generate.temperature=100 generate.max_new_tokens=400 "$F/data" >/dev/null
	special=$(jq -r '[.added_tokens[] | select(.special)][0].content' "$F/model/tokenizer.json")
	jq -n -c --arg s "$special" '{prompt: "say \($s)3", completion: "x"}' >row
	set -- generate.temperature=5 generate.max_new_tokens=20
	e generate "$@" data.special_in_content=text row >as_text
	e generate "$@" data.special_in_content=allow row >allowed
	run ! cmp -s as_text allowed
	run -65 e generate data.special_in_content=error row
	[[ "$output" == *"$special"* ]]
}

@test "each row has random numbers of its own, whatever the seed of another run" {
	for _ in $(seq 17); do cat "$F/rows.jsonl"; done | head -128 >many
	g() { e generate generate.temperature=5 generate.max_new_tokens=6 generate.seed=$1 many | jq -r '.messages[-1].content // .completion'; }
	g 0 >zero && g 64 >other
	run ! cmp -s <(tail -64 zero) <(head -64 other)
}
