load ../helper
# MODEL: SmolLM2-135M-Instruct, a .gguf or folder.  The ids are transformers' (tests/golden/real/make_chat.py).

@test "ids of conversations equal apply_chat_template's" {
	tune-tokenize -q -m "$MODEL" --preview=1000 --json "$TUNE_TOP/tests/golden/real/chat.jsonl" |
		sed 's/.*"ids":\(\[[^]]*\]\).*/\1/' >got
	cmp got "$TUNE_TOP/tests/golden/real/chat_ids.jsonl"
}
