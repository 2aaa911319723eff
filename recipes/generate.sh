#!/usr/bin/env bash
# Answer the prompts of a JSON Lines file with a model, a run or an adapter.
# Output: JSON Lines with the answer as the last message, which tune-tokenize reads back.
. "$(dirname "$0")/lib.bash"
usage 'generate.sh MODEL PROMPTS.jsonl [key=value]... >answers.jsonl' "$@"
[ $# -ge 2 ] || die "need a MODEL and a file of prompts; try --help"
run $EVAL generate -m "$1" "${@:3}" "$2"
