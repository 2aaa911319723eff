load helper
# The fine print of configs is tests/unit/test_config.c; here is what a user of the command line meets.
# tune validate reads configs and settings as every tool does.

@test "U1: a typo stops a tool before it opens anything, all errors at once, with line and column" {
	printf 'learning_rte: 1e-4\noptim:\n  lr: 1\n  lr: 2\nlora-r: 8\ntrain:\n  lr: 1\n' >run.yaml
	run -78 --separate-stderr tune validate run.yaml
	[ "$stderr" = "tune validate: run.yaml:4:3: duplicate key 'lr' (the first is on line 3)
tune validate: run.yaml:1:1: unknown key 'learning_rte' (did you mean 'learning_rate'? here it is 'optim.lr')
tune validate: run.yaml:5:1: unknown key 'lora-r' (here it is 'lora.rank')
tune validate: run.yaml:7:3: unknown key 'train.lr' ('lr' belongs under optim: 'optim.lr')" ]
}

@test "U2: numbers are numbers however they are written" {
	for n in 5e-5 5.0e-5 5E-5 .00005; do
		printf 'optim:\n  lr: %s\n' "$n" >n.yaml
		run -0 tune validate n.yaml
	done
	printf 'optim:\n  lr: 0.001.0.005\ndata:\n  eos: yes\ntrain:\n  epochs: 3.5x\n' >bad.yaml
	run -78 --separate-stderr tune validate bad.yaml
	[ "${#stderr_lines[@]}" = 3 ]
	[ "${stderr_lines[0]}" = "tune validate: bad.yaml:2:7: optim.lr must be a finite number, found '0.001.0.005'" ]
}

@test "D15: --print-config shows each value with where it comes from, and reads back" {
	printf 'optim:\n  lr: 1e-4\nlora:\n  rank: 8\n' >a.yaml
	printf 'optim:\n  lr: 2e-4\n' >b.yaml
	tune validate -c a.yaml -c b.yaml lora.alpha=32 --print-config >all.yaml
	grep -E '^  lr: 2e-4 +# b.yaml:2:7$' all.yaml
	grep -E '^  rank: 8 +# a.yaml:4:9$' all.yaml
	grep -E '^  alpha: 32 +# command line$' all.yaml
	grep -E '^  eps: 1e-8 +# default$' all.yaml
	tune validate -c all.yaml --print-config | sed 's/ *# .*//' >again
	sed 's/ *# .*//' all.yaml | cmp - again
}

@test "later files and settings win, in the order of the command line" {
	printf 'optim:\n  lr: 1e-4\n' >a.yaml
	run -0 tune validate optim.lr=1 -c a.yaml optim.lr=2 --print-config=optim.lr
	[ "$output" = 2 ]
	run -0 bash -c 'tune validate -c - --print-config=optim.lr <a.yaml'
	[ "$output" = 1e-4 ]
}

@test "a misspelt setting is an error, a file of such a name is a file" {
	run -78 --separate-stderr tune validate optim.lrr=1
	[ "$stderr" = "tune validate: optim.lrr=1: unknown key 'optim.lrr' (did you mean 'optim.lr'?)" ]
	run -78 --separate-stderr tune validate optm.lr=1 lora.rank=x
	[ "${#stderr_lines[@]}" = 2 ]
	echo 'optim: {lr: 1}' >a.b=c
	run -0 tune validate a.b=c
	[ "$output" = "a.b=c: ok" ]
	mv a.b=c optim.lr=1
	run -0 tune validate ./optim.lr=1
	[ "$output" = "./optim.lr=1: ok" ]
	run -0 tune validate --print-config=optim.lr optim.lr=1
	[ "$output" = 1 ]
}

@test "an unknown key of --print-config is 64 and names the nearest" {
	run -64 --separate-stderr tune validate --print-config=optim.lrr
	[ "${stderr_lines[0]}" = "tune validate: unknown key 'optim.lrr' (did you mean 'optim.lr'?)" ]
}

@test "options: clusters, attached values, -- and empty values" {
	printf 'optim:\n  lr: 3\n' >-c.yaml
	run -0 tune validate -qvc./-c.yaml --print-config=optim.lr
	[ "$output" = 3 ]
	run -0 tune validate -- -c.yaml
	[ "$output" = "-c.yaml: ok" ]
	run -64 --separate-stderr tune validate -c
	[ "$stderr" = "tune validate: option '-c' needs a value
tune validate: try 'tune validate --help'" ]
	run -64 --separate-stderr tune validate --config=
	[ "${stderr_lines[0]}" = "tune validate: option '--config' has an empty value" ]
	run -0 tune validate --nope --help
	run -64 tune validate --conf x   # no beginnings of names
}

@test "a file that is missing, too large or hostile" {
	run -66 --separate-stderr tune validate -c nosuch.yaml x
	[ "$stderr" = "tune validate: cannot open 'nosuch.yaml': No such file or directory" ]
	head -c 2000000 /dev/zero | tr '\0' '#' >big.yaml
	run -78 tune validate big.yaml
	printf 'x: \033[31m\n' >esc.yaml
	run -78 --separate-stderr tune validate esc.yaml
	run ! grep -q "$(printf '\033')" <<<"$stderr"
	printf 'a: &a [1]\nb: *a\n' >alias.yaml
	run -78 tune validate alias.yaml
	head -c 100000 /dev/zero | tr '\0' '[' >deep.yaml
	run -78 --separate-stderr tune validate deep.yaml
	[ "$stderr" = "tune validate: deep.yaml:1:17: lists and maps are nested too deep" ]
}

@test "relative paths of a file are relative to it" {
	mkdir sub
	printf 'model:\n  path: m\n' >sub/c.yaml
	run -0 tune validate -c sub/c.yaml --print-config=model.path
	[ "$output" = sub/m ]
	tune validate -c sub/c.yaml --print-config | grep "^  path: $PWD/sub/m "
}
