# A tiny model with a byte-level tokenizer, rows, and shards: what the tests of training and evaluation share.

# tiny_model DIR: config.json and tokenizer of the demo, with two narrow layers; no weights
tiny_model() {
	"$TUNE_TOP/configs/models/make_demo.sh" "$1" >/dev/null
	jq '.hidden_size = 32 | .intermediate_size = 64 | .num_hidden_layers = 2 | .num_attention_heads = 4 | .num_key_value_heads = 2 | .head_dim = 8' \
		"$1/config.json" >"$1/config.new"
	mv "$1/config.new" "$1/config.json"
}
# tiny_rows N: prompt and completion, as JSON Lines
tiny_rows() {
	awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++) printf "{\"prompt\": \"say %d\", \"completion\": \"the word is %d\"}\n", i, i * i % 97 }'
}
# tiny_data MODEL ROWS OUT key=value...: rows to shards
tiny_data() {
	local model=$1 rows=$2 out=$3
	shift 3
	tune-tokenize -q -m "$model" -o - "$rows" | tune-shard -q --force -o "$out" shard.seq_len=128 "$@" -
}
# weights DIR: a hash of the weights of a checkpoint
weights() { cat "$1"/*model*.safetensors | sha256sum | cut -c1-64; }
# first EVENT FILE: the first line of that event
event() { jq -c "select(.event == \"$1\")" "$2"; }
