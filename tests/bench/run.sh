#!/bin/sh
# Timings beside the machine's own measured peak.  B: build folder.  Called by make bench.
set -eu
for b in "${B:-build}"/bench/*; do
	[ -x "$b" ] && [ -f "$b" ] || continue
	echo "== ${b##*/}"
	"$b"
done
if [ -n "${MODEL:-}" ]; then
	echo "== training, SmolLM2-135M${PEER:+, beside PyTorch}"
	PATH=$PWD/${B:-build}/bin:$PATH sh "$(dirname "$0")/train.sh" "$MODEL"
fi
