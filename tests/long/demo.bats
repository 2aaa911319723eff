load ../helper

@test "the demo: spelling from about 0 to 90 % and more on words that it has never seen, and the nine games stay" {
	run -0 --separate-stderr "$TUNE_TOP/recipes/demo.sh" demo
	echo "$output"
	share() { sed -n 's/^match \([0-9.]*\) %.*/\1/p' "$1"; }
	awk -v before="$(share demo/before.txt)" -v after="$(share demo/after.txt)" -v games="$(share demo/games.txt)" \
		'BEGIN { exit !(before < 1 && after >= 90 && games >= 90) }'
	[[ "$output" == *"Held-out spelling: before match"*"after match"* ]]
}
