#!/usr/bin/env bash
# Fine-tune a model on conversations: tokenize, shard, train, evaluate, export.
# All is kept under one RUN folder (save.dir, else runs/NAME); run again after an
# interruption (exit 75), it goes on where it stopped; --extend with more train.steps
# goes on with a run that is done.
. "$(dirname "$0")/lib.bash"
. "$here/stages.bash"
usage 'sft.sh CONFIG [--extend] [key=value]...   (CONFIG: a file, or a name that tune ls shows)' "$@"
begin "$@"
data
train
if [ -n "$VAL" ]; then
	run $EVAL loss "${args[@]}" model.adapter= -m "$RUN/latest" "$VAL"
elif [ -e "$DATA/val-00000.tns" ]; then
	run $EVAL loss "${args[@]}" model.adapter= -m "$RUN/latest" "$DATA"/val-*.tns
fi
export_run
