load helper

# complete LINE: what a tab at its end offers, one a line
offers() {
	bash -c '. "$TUNE_TOP/completion/tune.bash"; compopt() { :; }
		COMP_LINE=$1 COMP_POINT=${#1}; _tune; printf "%s\n" "${COMPREPLY[@]}"' _ "$1"
}

@test "completion offers verbs, tools, options, keys and files" {
	run -0 offers 'tune v'
	[ "$output" = $'validate\nversion' ]
	run -0 offers 'tune cp --fo'
	[ "$output" = --force ]
	run -0 offers 'tune validate optim.l'
	[ "$output" = optim.lr= ]
	run -0 offers 'tune run sf'
	[ "$output" = sft ]
	run -0 offers 'tune run sft smollm2_135m_l'
	[ "$output" = smollm2_135m_lora ]
	touch mine.yaml
	run -0 offers 'tune validate mi'
	[ "$output" = mine.yaml ]
	run -0 offers 'tune validate model.path=mi'
	[ "$output" = mine.yaml ]
}

@test "completion knows the tools' own options and verbs" {
	for t in "$(dirname "$(command -v tune)")"/tune-*; do
		[ -x "$t" ] || skip "no tool is built"
		run -0 offers "${t##*/} --print-c"
		[ "$output" = --print-config ] || [ -z "$output" ]
		run -0 offers "tune ${t##*/tune-} --hel"
		[ "$output" = --help ]
	done
}
