# Shared by the recipes: find the programs, say what is run (stages.bash has the stages).  Each stage can be another program: TUNE_TOKENIZE=./mine.py recipes/sft.sh ...
set -euo pipefail
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for d in "$here/../../../bin" "$here/../build/bin"; do   # an installation, the source tree
	if [ -x "$d/tune-train" ]; then PATH=$(cd "$d" && pwd):$PATH; fi
done
TOKENIZE=${TUNE_TOKENIZE:-tune-tokenize} SHARD=${TUNE_SHARD:-tune-shard} TRAIN=${TUNE_TRAIN:-tune-train}
EVAL=${TUNE_EVAL:-tune-eval} CKPT=${TUNE_CKPT:-tune-ckpt}
configs=$(cd "$here/../configs" && pwd)

die() { echo "${0##*/}: $*" >&2; exit 64; }
run() { printf '+ %s\n' "$*" >&2; (trap - INT; exec "$@") <&0 & await; }
await() { # the program started last; a signal that comes meanwhile goes to it (Ctrl-C does by itself), and its status is ours
	local pid=$! rc=0 stopped=
	trap 'stopped=1; kill -TERM $pid 2>/dev/null || true' TERM HUP USR1; trap : INT
	while :; do rc=0; wait "$pid" || rc=$?; kill -0 "$pid" 2>/dev/null || break; done
	[ -z "$stopped" ] || { rc=0; wait "$pid" 2>/dev/null || rc=$?; }
	trap - TERM HUP USR1 INT
	[ -z "$stopped" ] || [ "$rc" = 0 ] || exit 75   # stopped early: the same command goes on
	return $rc
}
usage() { # TEXT "$@": print it, and the recipe's own comment, when help is asked for or arguments are missing
	case ${2:-} in
	-h|--help) printf 'usage: %s\n' "$1"; sed -n '2,/^[^#]/s/^# //p' "$0"; exit 0 ;;
	'') printf 'usage: %s\n' "$1" >&2; exit 64 ;;
	esac
}
value() { tune-train "${args[@]}" --print-config="$1"; }   # KEY: one setting, with the operands applied
begin() { # CONFIG key=value...: args, and the RUN folder (save.dir, or runs/NAME of the config)
	local config=$1; shift
	[ -e "$config" ] || config=$configs/$config
	[ -e "$config" ] || config=$config.yaml
	args=(-c "$config") extend=
	for a; do [ "$a" = --extend ] && extend=$a || args+=("$a"); done   # tune-train's alone
	RUN=$(value save.dir)
	[ -n "$RUN" ] || { RUN=runs/$(basename "$config" .yaml); args+=("save.dir=$RUN"); }
	[ ! -d "$RUN" ] || ! command -v flock >/dev/null || flock -n "$RUN" true || { echo "${0##*/}: another program is at work in '$RUN'" >&2; exit 73; }
}
