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
run() { printf '+ %s\n' "$*" >&2; "$@"; }
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
	args=(-c "$config" "$@")
	RUN=$(value save.dir)
	[ -n "$RUN" ] || { RUN=runs/$(basename "$config" .yaml); args+=("save.dir=$RUN"); }
	mkdir -p "$RUN"
}
