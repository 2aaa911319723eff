load helper

# stream [N]: documents of 5 + i % 40 tokens, the last half trained; id i first
prepare() {
	cat >make.py <<-'END'
		import msgpack, struct, sys
		n, out = int(sys.argv[1]), sys.stdout.buffer
		put = lambda tag, m: out.write(msgpack.packb([tag, m]))
		put("TUNE", {"v": [1, 0], "kind": "toks", "tok": {"vocab": 128256}, "inputs": [sys.argv[2] if len(sys.argv) > 2 else "rows.jsonl"], "prov": []})
		for i in range(n):
		    k = 5 + i * 7919 % 40
		    ids = [i] + [1000 + j for j in range(k - 1)]
		    put("TOKS", {"seq": i, "src": 0, "line": i + 1, "ids": struct.pack("<%dI" % k, *ids), "mask": bytes(int(j > k // 2) for j in range(k))})
		put("TEND", {"n": n})
	END
	/usr/bin/python3 make.py 400 >in.tns
}
s() { tune-shard -q shard.seq_len=64 "$@"; }
docs() { tune-stream cat --json "$@" | jq -c 'select(.tag == "PACK") | . as $p | reduce range(.lens | length) as $i ({at: 0, out: []};
	.out += [[$p.lines[$i], $p.ids[.at:.at + $p.lens[$i]], $p.mask[.at:.at + $p.lens[$i]]]] | .at += $p.lens[$i]) | .out[]'; }

@test "P5: every document is in one pack, whole, and nothing else" {
	s -o out in.tns
	docs out/*.tns | sort >got
	tune-stream cat --json in.tns | jq -c 'select(.tag == "TOKS") | [.line, .ids, .mask]' | sort | cmp - got
	jq -e '.splits.train | .tokens / (.records * 64) > 0.95' out/manifest.json
}

@test "D11: too long: drop, truncate, split, error; counted with their rows" {
	long="shard.seq_len=30"
	run -0 tune-shard -o drop $long in.tns
	[[ "$output" == *"longer than shard.seq_len 30 (rows.jsonl:"* ]]
	[ "$(docs drop/*.tns | jq -s 'map(.[1] | length) | max')" -le 30 ]
	run -0 tune-shard -o cut $long shard.overlong=truncate in.tns
	[[ "$output" == *"truncated to shard.seq_len 30"* ]]
	docs cut/*.tns | jq -s -e 'map(select(.[1] | length == 30)) | all(.[1][1:] == [range(29) | . + 1000])'   # no end token was put in
	run -0 tune-shard -o split $long shard.overlong=split in.tns
	[ "$(docs split/*.tns | jq -s 'map(.[1] | length) | add')" -gt "$(docs cut/*.tns | jq -s 'map(.[1] | length) | add')" ]
	docs split/*.tns | jq -s -e 'all(.[2][0] == 0)'
	run -65 tune-shard -o err $long shard.overlong=error in.tns
	[[ "$output" == *"rows.jsonl:"*" has "* ]]
	[ ! -e err ]
}

@test "MUST-4 D3: no trainable document is an error that says why, and leaves nothing" {
	run -65 s -o out shard.min_trained=100 in.tns
	[[ "$output" == *"no document is left of 400: 400 with fewer trained tokens"*"rows.jsonl:1"* ]]
	[ ! -e out ] && [ -z "$(ls -d out* 2>/dev/null)" ]
}

@test "K4: ids beyond 16 bits go through" {
	printf '%s\n' '{"tag":"TUNE","v":[1,0],"kind":"toks","tok":{"vocab":128256},"inputs":["a"],"prov":[]}' \
		'{"tag":"TOKS","seq":0,"src":0,"line":1,"ids":[0,65535,65536,128009],"mask":[0,1,1,1]}' '{"tag":"TEND","n":1}' | tune-stream encode >k
	s -o out k
	[ "$(docs out/*.tns | jq -c '.[1]')" = "[0,65535,65536,128009]" ]
}

@test "the same bytes for any number of threads and any memory; another seed, another order" {
	s -o a in.tns
	s -o b -j 3 --mem 64K in.tns
	diff -r a b
	s -o c shard.seed=1 in.tns
	[ "$(docs c/*.tns | sort | sha256sum)" = "$(docs a/*.tns | sort | sha256sum)" ]
	run ! cmp -s a/train-00000.tns c/train-00000.tns
}

@test "the split keeps equal prompts together, and documents where they were when more come" {
	/usr/bin/python3 make.py 600 >more.tns
	s -o a shard.val_fraction=0.2 in.tns
	s -o b shard.val_fraction=0.2 more.tns
	docs a/val-*.tns | sort >va
	docs b/val-*.tns | jq -c 'select(.[0] <= 400)' | sort | cmp - va
	n=$(wc -l <va)
	[ "$n" -gt 40 ] && [ "$n" -lt 130 ]
	cat in.tns in.tns >twice.tns
	s -o c shard.val_fraction=0.2 twice.tns
	[ "$(docs c/val-*.tns | sort -u | wc -l)" = "$n" ]
	# one prompt, several answers
	tune-stream cat --json in.tns | jq -c 'if .tag == "TOKS" then (. as $t | range(3) | . as $k | $t | .seq = .seq * 3 + $k | .ids[-1] = $k) elif .tag == "TEND" then {tag, n: (.n * 3)} else . end' | tune-stream encode >answers.tns
	s -o d shard.val_fraction=0.2 answers.tns
	prompts() { docs "$@" | jq -c '. as [$l, $ids, $m] | $ids[:($m | index(1))]' | sort | uniq -c; }
	prompts d/val-*.tns >v
	[ "$(wc -l <v)" -gt 40 ] && [ "$(awk '{ print $1 }' v | sort -u)" = 3 ]
}

@test "a share of texts, and of what is trained as a whole, is held out too" {
	tok=$TUNE_TOP/tests/golden/chat/tok
	for i in $(seq 200); do echo '{"text":"The number is '$i'."}'; done >texts.jsonl
	tune-tokenize -q -m "$tok" -o texts.tns texts.jsonl
	for seed in 0 1 2; do
		s -o t$seed shard.val_fraction=0.3 shard.seed=$seed texts.tns
		n=$(docs t$seed/val-*.tns | wc -l)
		[ "$n" -gt 40 ] && [ "$n" -lt 80 ]
	done
}

@test "a mixture follows its weights by token" {
	/usr/bin/python3 make.py 400 x.jsonl >x.tns
	/usr/bin/python3 make.py 400 y.jsonl >y.tns
	run -0 tune-shard -o out shard.seq_len=64 'shard.mix={x: 3, y: 1}' x.tns y.tns
	[[ "$output" == *"mix: 'x' "*"75."*"used up"* || "$output" == *"mix: 'x' "*"74."* ]]
	run -78 s -o out2 'shard.mix={x: 3}' x.tns y.tns
	run -78 s -o out2 'shard.mix={x: 3, z: 1}' x.tns y.tns
	[[ "$output" == *"called 'z'; there are 'x.tns', 'y.tns'; made from 'x.jsonl', 'y.jsonl'" ]]
	# what documents were made from need not differ: a stream, a folder of them, or an input is named
	mkdir in && cp x.tns in/a.tns && cp x.tns b.tns
	/usr/bin/python3 make.py 400 x.jsonl >in/c.tns
	run -0 tune-shard -o out3 shard.seq_len=64 'shard.mix={in: 3, b: 1}' in b.tns
	[[ "$output" == *"mix: 'in' "*"75."* || "$output" == *"mix: 'in' "*"74."* ]]
	run -0 tune-shard -o out4 shard.seq_len=64 'shard.mix={in: 1, b: 1}' in/ b.tns
	[[ "$output" == *"mix: 'in' "*" 50."* || "$output" == *"mix: 'in' "*" 49."* ]]
	tune-stream cat x.tns y.tns >xy.tns
	run -0 tune-shard -o out5 shard.seq_len=64 'shard.mix={x.jsonl: 3, y.jsonl: 1}' xy.tns
	[[ "$output" == *"mix: 'x.jsonl' "*"75."* || "$output" == *"mix: 'x.jsonl' "*"74."* ]]
	run -0 tune-shard -o out6 shard.seq_len=64 'shard.mix={xy: 1, y.jsonl: 3}' xy.tns
	[[ "$output" == *"mix: 'xy' "*"25."* || "$output" == *"mix: 'xy' "*"24."* ]]
	run -78 s -o out7 'shard.mix={b: 1, b.tns: 1}' b.tns
	run -78 s -o out7 'shard.mix={b: 1}' b.tns x.tns
	[[ "$output" == *"no weight for 'x.tns', nor for its input 'x.jsonl' (0 leaves it out)" ]]
	run -78 s -o out7 'shard.mix={b: 1, b.tns: 1}' b.tns b.tns
	[[ "$output" == *"'b.tns' fits 'b.tns' too; it is given twice" || "$output" == *"'b' fits 'b.tns' too; give whole names" ]]
	cp b.tns in/b.tns
	run -78 s -o out7 'shard.mix={b: 1}' b.tns in
	[[ "$output" == *"'b' fits 'in/b.tns' too; give whole names" ]]
}

@test "an empty split is said; what is dropped is, even with -q; --val-output alone is refused" {
	/usr/bin/python3 make.py 3 >few.tns
	run -0 --separate-stderr tune-shard -q -o few shard.val_fraction=0.0001 few.tns
	[[ "$stderr" == *"no document fell to the validation split"* ]]
	run -0 --separate-stderr tune-shard -q -o some shard.seq_len=24 in.tns
	[[ "$stderr" == *"warning: dropped: "* ]]
	run -64 s -o - --val-output v.tns in.tns
	for seed in $(seq 40); do
		tune-shard -q -o s$seed shard.seed=$seed shard.val_fraction=0.9 few.tns 2>err || { grep -q 'all 3 documents fell to the validation split' err && [ ! -e s$seed ] && return 0; }
	done
	false
}

@test "files are cut at shard.size, and a stream to stdout is one" {
	s -o out shard.size=65536 in.tns
	/usr/bin/python3 make.py 4000 >big.tns
	s -o big shard.size=64K big.tns
	[ "$(ls big/train-*.tns | wc -l)" -gt 2 ]
	s -o - shard.val_fraction=0.2 --val-output v.tns in.tns | tune-stream check
	tune-stream check v.tns
	run -78 s -o - shard.val_fraction=0.2 in.tns
}

@test "outputs appear whole or not at all" {
	s -o out in.tns
	before=$(sha256sum <out/manifest.json)
	run -73 s -o out in.tns
	head -c 3000 in.tns >cut
	run -65 s -o out --force cut
	[ "$(sha256sum <out/manifest.json)" = "$before" ]
	run -73 s -o no/such/folder/out in.tns
	run -74 bash -c 'tune-shard -q shard.seq_len=64 -o - in.tns >/dev/full'
	[ -z "$(ls -d ./*.tmp.* 2>/dev/null)" ]
	mkfifo f && exec 9<>f
	head -c 3000 in.tns >&9
	tune-shard -q shard.seq_len=64 -o killed - <f 3>&- 9>&- &
	sleep 0.3
	kill -TERM $!
	rc=0; wait $! || rc=$?
	exec 9>&-
	[ $rc = 143 ] && [ ! -e killed ]
	# a signal just when the new one takes the old one's place
	s -o new shard.seed=3 in.tns
	rc=0; SHIM_TERM=exchange shim tune-shard -q shard.seq_len=64 shard.seed=3 --force -o out in.tns || rc=$?
	[ $rc = 143 ] && diff -r new out
	[ -z "$(ls -d ./*.tmp.* 2>/dev/null)" ]
	s -o out --force in.tns
	s -o again in.tns
	diff -r again out
}

@test "a full disk names the file that could not be written" {
	[ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=100k none small || skip "needs a mount"
	# shellcheck disable=SC2015
	/usr/bin/python3 make.py 40000 >big.tns
	rc=0; s -o small/d big.tns 2>err || rc=$?
	left=$(ls small)
	umount small
	[ $rc = 74 ] && [ -z "$left" ]
	grep -q "cannot write 'small/d.tmp.*/train-00000.tns.*': No space left on device" err
}

@test "packs and pairs are refused by name" {
	s -o - in.tns >p.tns
	run -65 s -o out p.tns
	[[ "$output" == *"packed already"* ]]
	run -64 tune-shard in.tns
	run -66 s -o out nowhere.tns
}
