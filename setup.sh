#!/bin/sh
# setup.sh build|demo|check [-y]: install what is missing, build, then run the demo or the tests.
# On Debian and Ubuntu the packages are installed with apt-get, after a question (not asked with -y, as root, or in CI);
# elsewhere their names are printed.  The programs lie in build/bin/ then.
set -eu
cd "$(dirname "$0")"

build_packages='gcc make pkg-config libyaml-dev libzstd-dev libmsgpack-dev libxxhash-dev libmd-dev libedit-dev'
demo_packages='bash jq gnuplot-nox'
check_packages='bash jq gnuplot-nox bats perl mandoc man-db shellcheck python3 python3-msgpack clang zstd curl xz-utils util-linux procps'

usage() {
	echo "usage: sh setup.sh [-y] build|demo|check" >&2
	exit 64
}

what='' yes=''
for a; do
	case $a in
	build|demo|check) [ -z "$what" ] || usage; what=$a ;;
	-y) yes=1 ;;
	-h|--help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
	*) usage ;;
	esac
done
case $what in
build) packages=$build_packages ;;
demo) packages="$build_packages $demo_packages" ;;
check) packages="$build_packages $check_packages" ;;
*) usage ;;
esac

have() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed'; }

missing=''
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
	for p in $packages; do have "$p" || missing="$missing $p"; done
	# clang's runtime for the fuzz drivers is named after its version.
	if [ "$what" = check ] && ! ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1; then
		v=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
		[ -z "$v" ] || missing="$missing libclang-rt-$v-dev"
	fi
elif ! pkg-config --exists yaml-0.1 libzstd libxxhash libmd libedit 2>/dev/null; then
	echo "setup.sh: this is not Debian or Ubuntu; install what these Debian packages hold, then run it again:" >&2
	echo "  $packages" >&2
	exit 69
fi
if [ -n "$missing" ]; then
	root=''
	[ "$(id -u)" = 0 ] || root=sudo
	echo "setup.sh: to be installed:$missing" >&2
	if [ -z "$yes" ] && [ -n "$root" ] && [ -z "${CI:-}" ]; then
		printf 'Install them with sudo apt-get? [y/N] ' >&2
		read -r answer || answer=n
		case $answer in y|Y|yes) ;; *) echo "setup.sh: nothing was installed" >&2; exit 69 ;; esac
	fi
	$root apt-get update -qq
	# shellcheck disable=SC2086  # a list of packages
	DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

make -j"$(getconf _NPROCESSORS_ONLN)"
case $what in
build) echo "setup.sh: built; the programs are in build/bin" >&2 ;;
demo) exec recipes/demo.sh ;;
check) exec make check MODEL="${MODEL:-}" ;;
esac
