#!/usr/bin/env bash
# Train a model from scratch on text or conversations: tokenize, shard, train, export.
# MODEL is a config.json, its folder, or a name in configs/models; the tokenizer is any
# model's: model.tokenizer=FOLDER.  Run again after an interruption (exit 75), it goes on.
. "$(dirname "$0")/lib.bash"
. "$here/stages.bash"
usage 'pretrain.sh CONFIG MODEL model.tokenizer=FOLDER data.train=FILE [key=value]...' "$@"
[ $# -ge 2 ] || die "need a CONFIG and a MODEL; try --help"
model=$2
[ -e "$model" ] || model=$configs/models/$2
[ ! -d "$model" ] || model=$model/config.json
[ -e "$model" ] || die "no config.json at '$2', and no such name in $configs/models"
begin "$1" model.init=random "model.config=$model" "${@:3}"
[ -n "$(value model.tokenizer)" ] || die "need a tokenizer: model.tokenizer=FOLDER (a model folder, tokenizer.json or .gguf)"
data
train
export_run
