bats_require_minimum_version 1.5.0
# Every test runs in a folder of its own, with no settings of the user's.
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export LC_ALL=C TUNE_TOP="${TUNE_TOP:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}"
	unset NO_COLOR TUNE_CPU
	if declare -F prepare >/dev/null; then prepare; fi
}
# shim PROGRAM...: with tests/shim.c preloaded (what it does: there)
shim() {
	[ -e "$BATS_FILE_TMPDIR/shim.so" ] || cc -shared -fPIC -o "$BATS_FILE_TMPDIR/shim.so" "$TUNE_TOP/tests/shim.c" -ldl
	ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$BATS_FILE_TMPDIR/shim.so "$@"
}
