#!/bin/sh
# Run TAP tests (unit binaries and .bats files) in parallel and close with one line: 'N passed, N failed'.
# B: build folder, J: files at once.  Called by make check.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
PATH="$top/${B:-build}/bin:$PATH"
TUNE_TOP=$top
export PATH TUNE_TOP
out=$(mktemp -d) || exit 71
trap 'rm -rf "$out"' EXIT

one() { # FILE: run it, keep its TAP, print it if anything failed
	t=$out/$(printf %s "$1" | tr / _).tap
	case $1 in
	*.bats) bats --tap "$1" >"$t" 2>&1 ;;
	*) "$1" >"$t" 2>&1 ;;
	esac
	rc=$?
	bad=$(grep -c '^not ok' "$t")
	# A test that dies, or prints no plan, has failed even if every line so far was ok.
	if [ "$bad" = 0 ] && { [ "$rc" != 0 ] || ! grep -q '^1\.\.' "$t"; }; then
		echo "not ok - $1 ended with status $rc before its plan" >>"$t"
		bad=1
	fi
	printf '%s: %s ok, %s not ok\n' "$1" "$(grep -c '^ok' "$t")" "$bad"
	[ "$bad" = 0 ] || { grep -A 30 '^not ok' "$t"; grep '^# ' "$t" | head -40; } | head -150
}

if [ "${1:-}" = --one ]; then out=$2; trap - EXIT; one "$3"; exit 0; fi
[ $# -gt 0 ] || { echo 'no tests given' >&2; exit 64; }
printf '%s\n' "$@" | xargs -P "${J:-2}" -I{} sh "$0" --one "$out" {}
pass=$(cat "$out"/*.tap | grep -c '^ok')
fail=$(cat "$out"/*.tap | grep -c '^not ok')
skip=$(cat "$out"/*.tap | grep '^ok' | grep -ci '# skip')
[ "$skip" = 0 ] || { echo "skipped:"; cat "$out"/*.tap | grep '^ok' | grep -i '# skip'; }
echo "$((pass - skip)) passed, $fail failed$([ "$skip" = 0 ] || echo ", $skip skipped")"
[ "$fail" = 0 ]
