load helper

@test "every fuzz driver takes its seeds and some thousands of inputs made from them" {
	command -v clang >/dev/null && ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || skip "no clang with libFuzzer"
	work=$PWD
	cd "$TUNE_TOP"   # the drivers open their models by relative names
	make -s -j2 SAN= fuzz-build >/dev/null
	for f in tests/fuzz/fuzz_*.c; do
		name=$(basename "$f" .c)
		mkdir "$work/$name"
		"build/fuzz/$name" -runs=2000 -timeout=10 -rss_limit_mb=2048 -seed=1 -artifact_prefix="$work/" "$work/$name" "tests/fuzz/seeds/${name#fuzz_}" \
			2>"$work/$name.log" || { tail -30 "$work/$name.log"; false; }
	done
}
