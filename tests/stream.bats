load helper
load tiny

prepare() {
	cat >lines <<-'END'
		{"tag":"TUNE","v":[1,0],"kind":"toks","tok":{"vocab":300},"inputs":["a.jsonl"],"prov":[]}
		{"tag":"TOKS","seq":0,"src":0,"line":1,"ids":[1,2,3],"mask":[0,1,1]}
		{"tag":"TOKS","seq":1,"src":0,"line":2,"ids":[4,5,299],"mask":[0,0,1],"extra":7}
		{"tag":"note","text":"passes"}
		{"tag":"TOKS","seq":2,"src":0,"line":3,"ids":[6,7],"mask":[0,1]}
		{"tag":"TEND","n":4}
	END
	tune-stream encode lines >a.tns
}
# with SED: the stream with a line changed
with() { sed "$1" lines | tune-stream encode; }

@test "check, head, cat, and JSON there and back" {
	run -0 tune-stream check a.tns
	[[ "$output" == "a.tns: ok: toks, 4 records, 8 tokens, 4 trained, xxh64 "* ]]
	tune-stream head -n 2 a.tns | tune-stream check --json - | jq -e '.records == 2'
	tune-stream cat --json a.tns >json
	jq -s -e 'map(select(.tag == "TOKS" and .seq == 1))[0] | .extra == 7 and .ids == [4,5,299]' json
	jq -s -e 'map(select(.tag == "note"))[0].text == "passes"' json
	tune-stream encode json | cmp - a.tns
}

@test "a stream cut at any byte, and so at every record boundary, is refused: plain and compressed" {
	zstd -q a.tns -o z.tns
	for f in a.tns z.tns; do
		size=$(stat -c %s $f)
		for n in $(seq 0 $((size - 1))); do
			head -c "$n" $f >cut
			tune-stream check cut >/dev/null 2>err && { echo "$f cut to $n bytes is taken"; false; }
			[ "$(wc -l <err)" = 1 ]
		done
	done
	head -c $(($(stat -c %s a.tns) - 5)) a.tns >cut
	run -65 tune-stream check cut
	[[ "$output" == *"truncated"* ]]
}

@test "cat a b is a stream; its rows know their files; other tokenizers and kinds are refused" {
	with 's/a.jsonl/b.jsonl/' >b.tns
	cat a.tns b.tns >ab
	tune-stream check --json ab | jq -e '.records == 8'
	tune-stream cat ab | tune-stream cat --json | jq -s -e '[.[] | select(.tag == "TOKS") | .src] == [0,0,0,1,1,1]'
	with 's/"vocab":300/"vocab":301/' >other.tns
	cat a.tns other.tns >bad
	run -65 tune-stream check bad
	run -65 tune-stream cat a.tns other.tns
}

@test "check finds a seq that stands twice, counts parts, and gives the hash that one part would have" {
	run -65 bash -c "$(declare -f with); with 's/\"seq\":2/\"seq\":0/' | tune-stream check"
	[[ "$output" = *"two records have seq 0, which must be unique" ]]
	cat a.tns a.tns >aa
	run -0 tune-stream check aa
	[[ "$output" = "aa: ok: toks, 8 records in 2 parts, 16 tokens, "* ]]
	[ "$(tune-stream check --json aa | jq -r .xxh64)" = "$(tune-stream cat aa | tune-stream check --json | jq -r .xxh64)" ]
	tune-stream check --json a.tns | jq -e '.parts == 1'
	tune-stream cat aa | tune-stream check --json | jq -e '.parts == 1 and .records == 8'
}

@test "whole numbers of 64 bits survive the JSON form, whatever the program between does to numbers" {
	/usr/bin/python3 -c '
import msgpack
r = list(msgpack.Unpacker(open("a.tns", "rb")))
r[1][1]["big"] = [2**64 - 1, 2**63, 2**53 + 1, -2**63, 2**53, -5]
r[-1][1] = {"n": 4}
open("big.tns", "wb").write(b"".join(msgpack.packb(x) for x in r))'
	tune-stream cat --json big.tns | jq -c . | tune-stream encode >again.tns
	/usr/bin/python3 -c '
import msgpack
assert list(msgpack.Unpacker(open("again.tns", "rb")))[1][1]["big"] == [2**64 - 1, 2**63, 2**53 + 1, -2**63, 2**53, -5]'
	for bad in '""' '"1x"' '"-"' '"18446744073709551616"' 7; do
		run -65 bash -c "sed 's/\"extra\":7/\"extra\":{\"\$int\":$bad}/' lines | tune-stream encode"
		[[ "$output" = *"'\$int' must hold the digits"* ]]
	done
}

@test "streams that were merged again and again are streams" {
	cp a.tns a0
	for i in 1 2 3 4 5 6 7 8; do tune-stream cat a$((i - 1)) a.tns >a$i; done
	tune-stream check --json a8 | jq -e '.records == 36'
	tune-stream cat --json a8 | head -1 | jq -e '.prov[-1].in | length == 2'
}

@test "encode passes on what it has while its input waits" {
	mkfifo f && exec 9<>f
	tune-stream encode <f 3>&- 9>&- | cat >out 3>&- 9>&- &
	head -3 lines >&9
	for _ in $(seq 100); do [ ! -s out ] || break; sleep 0.1; done
	[ -s out ]
	tail -n +4 lines >&9
	exec 9>&-
	wait $!
	cmp out a.tns
}

@test "an option of another verb is refused, not passed over" {
	for c in 'head --json' 'encode --json' 'index --json' 'check -n 3' 'cat -n 3' 'cat --force' 'check -o x'; do
		run -64 tune-stream $c a.tns
		[[ "$output" == *" goes with "*", not with ${c%% *}"* ]]
	done
}

@test "encode of a stream, index of standard input or of a link say what to do" {
	run -65 tune-stream encode a.tns
	[[ "$output" = *"a.tns: this is a token stream already; encode reads the lines of"* ]]
	run -64 tune-stream index - <a.tns
	[[ "$output" = *"write it to a file first"* ]]
	ln -s a.tns link
	tune-stream index link
	[ -L link ]
	[ "$(head -c 4 a.tns | od -An -tx1 | tr -d ' ')" = 28b52ffd ]
}

@test "what does not hold is refused, by record" {
	run -65 bash -c "$(declare -f with); with 's/\"mask\":\[0,1,1\]/\"mask\":[1,1,1]/' | tune-stream check"
	run -65 bash -c "$(declare -f with); with 's/299/300/' | tune-stream check"
	run -65 bash -c "$(declare -f with); with 's/\"mask\":\[0,1\]/\"mask\":[0]/' | tune-stream check"
	run -65 bash -c "$(declare -f with); with 's/\"v\":\[1,0\]/\"v\":[2,0]/' | tune-stream check"
	[[ "$output" == *2* && "$output" == *1* ]]
	/usr/bin/python3 - <<-'END'
		import msgpack
		r = list(msgpack.Unpacker(open("a.tns", "rb")))
		def put(name, end):
		    open(name, "wb").write(b"".join(msgpack.packb(x) for x in r[:-1] + [["TEND", end]]))
		put("n", {"n": 3}); put("tokens", {"n": 4, "tokens": 9}); put("hash", {"n": 4, "xxh64": "0" * 16}); put("good", {"n": 4})
		open("tag", "wb").write(b"".join(msgpack.packb(x) for x in r[:1] + [["WHAT", {}]] + r[1:]))
	END
	for f in n tokens hash tag; do run -65 tune-stream check $f; done
	tune-stream check good
}

@test "index makes a file that can be read in any order; existing outputs are refused; a full disk is 74" {
	tune-stream index -o i.tns a.tns
	run -73 tune-stream index -o i.tns a.tns
	tune-stream index a.tns
	cmp a.tns i.tns
	run -74 bash -c 'tune-stream cat a.tns >/dev/full'
	run -66 tune-stream check nowhere.tns
	run -64 tune-stream
	run -64 tune-stream nothing
	run -65 bash -c 'echo "{\"tag\":" | tune-stream encode'
}
