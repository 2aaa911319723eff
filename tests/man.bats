load helper
# The man pages are held to the programs.  A page joins by being in man/.
#
# EXAMPLES that run: in a literal block (.Bd -literal) of the section EXAMPLES, a line that begins with '$ ' is run by bash in a folder
# that man_fixture.sh fills (model/, adapter/, chats.jsonl, qa.jsonl, text.txt) and that the page's later examples share; '> ' lines
# go on with the command.  It must end with 0.  Lines that follow are its standard output, exactly; a line '...' stands for any
# lines.  Without such lines the output does not matter.  Blocks without '$ ' are not run (downloads, GPUs, large models).
# Write "\e" for a backslash and "\&..." for a line that begins with a dot.

setup_file() {
	export TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}" FIXTURE="$BATS_FILE_TMPDIR/fixture"
	why=$(bash "$TUNE_TOP/tests/man_fixture.sh" "$FIXTURE" 2>&1) && why= || why="status $?: $why"
	export why
}

tools() { (cd "$(dirname "$(command -v tune)")" && ls -d tune*); }

@test "pages pass mandoc's lint" {
	command -v mandoc >/dev/null || skip "no mandoc"
	run -0 mandoc -Tlint -Wwarning "$TUNE_TOP"/man/*.[157]
	[ -z "$output" ]
	# "Fl -each -" is set as "--each --"
	! grep -nE '\bFl (-?[a-z-]+ )+-$' "$TUNE_TOP"/man/*.[157]
}

@test "every program has a page that names each of its options and verbs" {
	for t in $(tools); do
		[ -e "$TUNE_TOP/man/$t.1" ] || { echo "no page for $t"; false; }
		"$t" --list-options >"$t.opts"
		[ "$t" != tune ] || for v in ls cp run validate help version; do tune $v --list-options; done >>"$t.opts"
		grep -q '^--help$' "$t.opts"
		while IFS= read -r o; do
			case $o in
			-*) grep -qE "Fl ([a-zA-Z] , Fl )?${o#-}( |\$)" "$TUNE_TOP/man/$t.1" || grep -qE "Fl $(printf %s "${o#-}")( |,|\$)" "$TUNE_TOP/man/tune.1" ;;
			*) grep -qE "^\.(It )?(Nm )?Cm (.* )?$o( |\$)" "$TUNE_TOP/man/$t.1" ;;
			esac || { echo "man/$t.1 does not name $o"; false; }
		done <"$t.opts"
	done
}

@test "the pages of the programs that take settings speak of tune-config(5)" {
	for t in $(tools); do
		! "$t" --list-options | grep -q '^--print-config' || grep -q '^\.Xr tune-config 5' "$TUNE_TOP/man/$t.1" || { echo "$t"; false; }
	done
}

@test "tune-config(5) has each key with its type, range, choices and default, and no other" {
	tune --schema | awk -F'\t' '
	function num(v) { return v == int(v) && v < 1e16 ? sprintf("%.0f", v) : sprintf("%.10g", v) }
	function words(s, skip,   a, n, i, out) {
		n = split(s, a, "|"); out = ""
		for (i = 1; i <= n; i++) if (a[i] != skip) out = out (out == "" ? "" : ", ") a[i]
		return out
	}
	{
		range = " from " num($5) " to " num($6)
		t["string"] = "String"; t["path"] = "Path"; t["int"] = "Whole number" range; t["number"] = "Number" range
		t["bool"] = "true or false"; t["choice"] = "One of " words($4); t["size"] = "Size" range; t["map"] = "Map"
		t["strings"] = "List of strings"; t["paths"] = "List of paths"; t["numbers"] = "List of numbers" range
		t["number or choice"] = "Number" range ", or " words($4, "number")
		print $1; print t[$2] ($2 == "path" && $4 != "" ? ", or " words($4) : "") "; default " ($3 == "" ? "none" : $3) "."
	}' | paste - - | sort >schema
	[ "$(wc -l <schema)" -gt 60 ]
	awk '/^\.Sh KEYS/ { on = 1 } /^\.Sh EXAMPLES/ { on = 0 } on && /^\.It Cm / { k = $3; getline; print k "\t" $0 }' \
		"$TUNE_TOP/man/tune-config.5" | sort >page
	diff page schema
}

@test "each program's page has an example that runs" {
	for t in $(tools); do grep -q '^\$ ' "$TUNE_TOP/man/$t.1" || { echo "$t.1"; false; }; done
}

@test "examples that need no model run: tune(1), tune-config(5)" {
	for p in tune.1 tune-config.5; do
		mkdir "$p.d"
		(cd "$p.d" && bash "$TUNE_TOP/tests/man_examples.sh" "$TUNE_TOP/man/$p")
	done
}

@test "the examples of every page run as shown" {
	case $why in 'status 77: '*) skip "${why#status 77: }" ;; esac
	[ -z "$why" ] || { echo "man_fixture.sh: $why"; false; }
	for p in "$TUNE_TOP"/man/*.[157]; do
		cp -R "$FIXTURE" "${p##*/}.d"
		(cd "${p##*/}.d" && bash "$TUNE_TOP/tests/man_examples.sh" "$p") || bad="${bad:-} ${p##*/}"
	done
	[ -z "${bad:-}" ]
}

@test "the examples' runner sees a wrong status, a wrong output and a right one" {
	printf '.Sh EXAMPLES\n.Bd -literal\n$ echo a; echo "b*"\na\nb*\n$ echo x; seq 3\nx\n\\&...\n$ printf "a\\en"\na\n.Ed\n' >good.1
	run -0 bash "$TUNE_TOP/tests/man_examples.sh" good.1
	printf '.Sh EXAMPLES\n.Bd -literal\n$ echo a; echo bc\na\nb*\n.Ed\n' >wrong.1
	run -1 bash "$TUNE_TOP/tests/man_examples.sh" wrong.1
	printf '.Sh EXAMPLES\n.Bd -literal\n$ false | cat\n.Ed\n' >fails.1
	run -1 bash "$TUNE_TOP/tests/man_examples.sh" fails.1
	[[ "$output" = *"status 1: false | cat"* ]]
}
