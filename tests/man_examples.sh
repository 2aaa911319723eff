#!/usr/bin/env bash
# Run the EXAMPLES of a man page in the working folder: man_examples.sh PAGE.  The convention is in man.bats.
set -uo pipefail
page=$1 cmd='' want='' bad=0

check() { # run the command that was collected and hold its output to what the page shows
	[ -n "$cmd" ] || return 0
	local got rc pattern='' line
	got=$(bash -o pipefail -c "$cmd" 2>stderr.txt)
	rc=$?
	if [ "$rc" != 0 ]; then
		printf '%s: status %s: %s\n' "$page" "$rc" "$cmd"
		cat stderr.txt
		bad=1
	elif [ -n "$want" ]; then
		while IFS= read -r line; do
			if [ "$line" = ... ]; then pattern+='*'; else pattern+="$(printf %q "$line")"'$'"'\\n'"; fi
		done < <(printf %s "$want")
		eval "[[ \$got\$'\\n' = $pattern ]]" || {
			printf '%s: not as shown: %s\n--- the page shows\n%s--- the command prints\n%s\n' "$page" "$cmd" "$want" "$got"
			bad=1
		}
	fi
	cmd='' want=''
}

# Literal blocks of EXAMPLES, each ended by .Ed, without roff's escapes.
while IFS= read -r line; do
	case $line in
	'$ '*) check; cmd=${line#'$ '} ;;
	'> '*) if [ -n "$cmd" ] && [ -z "$want" ]; then cmd+=$'\n'${line#'> '}; else want+=$line$'\n'; fi ;;
	.Ed) check ;;
	*) [ -z "$cmd" ] || want+=$line$'\n' ;;
	esac
done < <(awk '/^\.Sh/ { on = $2 == "EXAMPLES" } /^\.Bd -literal/ { lit = 1; next }
	on && lit { gsub(/\\&/, ""); gsub(/\\e/, "\\"); gsub(/\\-/, "-"); print } /^\.Ed/ { lit = 0 }' "$page")
rm -f stderr.txt
exit $bad
