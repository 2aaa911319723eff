load helper

prepare() { # a data folder of our own
	mkdir -p data/recipes data/configs
	printf '#!/usr/bin/env bash\n# Say what one is given.\nprintf "%%s\\n" "$@"; command -v tune\n' >data/recipes/say.sh
	printf '# a small config\noptim:\n  lr: 1e-3\n' >data/configs/small.yaml
	export TUNE_DATADIR=$PWD/data
}

@test "tune NAME runs tune-NAME with its arguments, from PATH" {
	mkdir bin
	printf '#!/bin/sh\nprintf "%%s|" "$0" "$@"; exit 7\n' >bin/tune-mine
	chmod +x bin/tune-mine
	PATH=$PWD/bin:$PATH run -7 tune mine --help -x 'a b'
	[ "$output" = "$PWD/bin/tune-mine|--help|-x|a b|" ]
}

@test "the tools beside tune come before those of PATH" {
	mkdir bin own
	cp "$(command -v tune)" own/tune
	printf '#!/bin/sh\necho own\n' >own/tune-mine
	printf '#!/bin/sh\necho path\n' >bin/tune-mine
	chmod +x own/tune-mine bin/tune-mine
	PATH=$PWD/bin:$PATH run -0 own/tune mine
	[ "$output" = own ]
}

@test "an unknown command is 127 and names the nearest" {
	run -127 --separate-stderr tune vlidate x
	[ "$stderr" = "tune: 'vlidate' is not a tune command (did you mean 'validate'?)" ]
	run -127 --separate-stderr tune qqqqqqqqqq
	[ "$stderr" = "tune: 'qqqqqqqqqq' is not a tune command; see 'tune --help'" ]
	run -127 tune ../x
}

@test "a tool that can't be run is 126" {
	mkdir bin
	echo >bin/tune-mine
	PATH=$PWD/bin:$PATH run -126 --separate-stderr tune mine
	[[ "$stderr" = "tune: cannot run 'tune-mine': "* ]] || [ "$(id -u)" = 0 ]
}

@test "usage errors have two lines and 64" {
	run -64 --separate-stderr tune
	[ "$stderr" = "tune: say what to do: ls, cp, run, validate, help or version
tune: try 'tune --help'" ]
	run -64 --separate-stderr tune cp --froce x
	[ "$stderr" = "tune cp: unknown option '--froce' (did you mean '--force'?)
tune cp: try 'tune cp --help'" ]
	run -64 --separate-stderr tune ls --color
	[ "${stderr_lines[0]}" = "tune ls: option '--color' needs a value" ]
	run -64 --separate-stderr tune ls --color=blue
	[ "${stderr_lines[0]}" = "tune ls: option '--color' must be auto, always or never, not 'blue'" ]
	run -64 --separate-stderr tune ls -Z
	[ "${stderr_lines[0]}" = "tune ls: unknown option '-Z'" ]
	run -64 --separate-stderr tune ls --json=1
	[ "${stderr_lines[0]}" = "tune ls: option '--json' takes no value" ]
	run -64 --separate-stderr tune ls x
	[ "${stderr_lines[0]}" = "tune ls: takes no operand" ]
}

@test "ls lists recipes and configs with what they say of themselves" {
	run -0 tune ls
	[ "$output" = "recipes/say.sh      Say what one is given.
configs/small.yaml  a small config" ]
	run -0 tune ls --json
	[ "${lines[1]}" = '{"kind":"config","name":"small.yaml","path":"'"$PWD"'/data/configs/small.yaml","about":"a small config"}' ]
}

@test "the models that can be made from scratch are listed and copied" {
	unset TUNE_DATADIR
	for m in debug 1B 7B 13B 40B 70B; do tune ls | grep -q "^models/$m  *llama, [0-9]* layers, dim [0-9]*: "; done
	mkdir my
	tune cp models/1B my && tune cp models/debug
	cmp my/config.json "$TUNE_TOP/configs/models/1B/config.json"
	cmp config.json "$TUNE_TOP/configs/models/debug/config.json"
	tune cp debug && [ -e debug.yaml ]
}

@test "ls makes no noise when its reader closes early" {
	for i in $(seq 500); do printf '# %0100d\n' "$i" >"data/configs/c$i.yaml"; done
	run -0 bash -c 'tune ls 2>err | head -1; echo "${PIPESTATUS[0]}" >rc; cat err'
	[ "$output" = "recipes/say.sh      Say what one is given." ]
	[ "$(cat rc)" = 141 ] || [ "$(cat rc)" = 0 ]
}

@test "a full disk is 74" {
	[ -e /dev/full ] || skip "no /dev/full"
	run -74 --separate-stderr bash -c 'tune ls >/dev/full'
	[ "$stderr" = "tune ls: cannot write standard output: No space left on device" ]
}

@test "ls and cp without a data folder are 66" {
	TUNE_DATADIR=$PWD/nowhere run -0 tune ls
	[ -z "$output" ]
	unset TUNE_DATADIR
	mkdir own
	cp "$(command -v tune)" own/tune
	[ -d /usr/local/share/tune ] && skip "tune is installed here"
	run -66 own/tune ls
}

@test "cp copies by name, refuses to overwrite, keeps recipes executable" {
	run -0 tune cp say
	[ -x say.sh ]
	run -73 --separate-stderr tune cp say
	[[ "$stderr" = *"say.sh"* ]]
	run -0 tune cp --force say.sh
	run -0 tune cp configs/small.yaml mine.yaml
	cmp mine.yaml data/configs/small.yaml
	[ ! -x mine.yaml ]
	mkdir sub
	run -0 tune cp small sub
	[ -e sub/small.yaml ]
	run -66 --separate-stderr tune cp smal
	[ "$stderr" = "tune cp: no recipe, config or model 'smal' (did you mean 'small'?)" ]
}

@test "a copied recipe reads the shared file where it lies" {
	unset TUNE_DATADIR
	tune cp sft mine.sh
	run -0 ./mine.sh --help
	[[ "$output" = usage:* ]]
}

@test "run finds recipe and config by name and puts the tools first in PATH" {
	mkdir own
	cp "$(command -v tune)" own/tune
	run -0 own/tune run say small optim.lr=1 --x
	[ "$output" = "$PWD/data/configs/small.yaml
optim.lr=1
--x
$PWD/own/tune" ]
	cp data/recipes/say.sh data/configs/small.yaml .
	run -0 tune run ./say.sh small.yaml
	[ "${lines[0]}" = small.yaml ]
	run -0 tune run say org/name
	[ "${lines[0]}" = org/name ]
	run -66 --separate-stderr tune run sya
	[ "$stderr" = "tune run: no recipe 'sya' (did you mean 'say'?)" ]
	rm small.yaml
	run -66 --separate-stderr tune run say smlal
	[ "$stderr" = "tune run: no config 'smlal' (did you mean 'small'?)" ]
	run -66 --separate-stderr tune run say nosuch.yaml
	[ "$stderr" = "tune run: no config 'nosuch.yaml'; see 'tune ls'" ]
}

@test "run ends with the recipe's status" {
	printf 'exit 75\n' >data/recipes/stop.sh
	run -75 tune run stop
}

@test "validate says ok, or all that is wrong" {
	run -0 tune validate data/configs/small.yaml
	[ "$output" = "data/configs/small.yaml: ok" ]
	printf 'lora:\n  ranl: 8\noptim:\n  lr: fast\n' >bad.yaml
	run -78 --separate-stderr tune validate bad.yaml data/configs/small.yaml
	[ "$output" = "data/configs/small.yaml: ok" ]
	[ "$stderr" = "tune validate: bad.yaml:2:3: unknown key 'lora.ranl' (did you mean 'lora.rank'?)
tune validate: bad.yaml:4:7: optim.lr must be a finite number, found 'fast'" ]
	run -66 tune validate nosuch.yaml
	run -64 tune validate
}

@test "every config of the tree is valid" {
	for f in "$TUNE_TOP"/configs/*.yaml; do run -0 tune validate "$f"; done
}

@test "help shows a page, and its path where man is missing" {
	run -0 bash -c 'MANPAGER=cat MANWIDTH=80 tune help config'
	[[ "$output" = *"settings of the tune programs"* ]]
	mkdir bin
	run -0 --separate-stderr env PATH="$PWD/bin" "$(command -v tune)" help config
	[ "$output" = "$TUNE_TOP/man/tune-config.5" ]
	[ "$stderr" = "tune help: man is not installed; the page is the file above" ]
	run -66 --separate-stderr tune help nosuch
	[ "$stderr" = "tune help: no manual page for 'nosuch'" ]
}

@test "version says what was built and what runs" {
	run -0 tune --version
	[[ "$output" =~ ^tune\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	tune version --json | jq -e '.version and .zstd and (.devices == ["cpu"]) and (.features | type == "array")'
	run -64 tune -q ls
	[[ "$output" == *"options follow the verb: tune ls [OPTION]..."* ]]
	run -0 tune version
	[[ "${lines[1]}" = compiler:* ]]
	[[ "${lines[2]}" = "cpu: $(uname -m)"* ]]
}

@test "help is at most 80 columns wide" {
	for t in "$(dirname "$(command -v tune)")"/tune*; do
		"$t" --help >help
		run ! grep -nE '^.{81,}' help
	done
}

@test "each command that the README and the demo's last lines name exists" {
	{ grep -ohE '^    .*' "$TUNE_TOP/README.md"; sed -n '/^cat <<END/,$p' "$TUNE_TOP/recipes/demo.sh" | tr -d '$()' | sed 's/command -v //'; } |
		grep -oE '(^|[ /|])tune(-[a-z]+)? [a-z][a-z-]*' | sed 's/^[ /|]*//' | sort -u >named
	grep -q '^tune-eval chat$' named && [ "$(wc -l <named)" -ge 7 ]
	while read -r program verb; do
		$program "$verb" --help >/dev/null || { echo "$program $verb"; false; }
	done <named
}
