#include "libcommon/text/template.h"

#include <string.h>

static const struct turns chatml = { "<|im_start|>", "\n", "<|im_end|>", "\n" };
static const struct turns llama3 = { "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>",
	"" };

static const struct dialect known[] = {
	{ "153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3", "chatml", &chatml, NULL,
		0 },
	{ "58c1a1f04baa7adaeaba1f90267c3d57d9396f0c1f0129bdde9e76d3c6784af7", "chatml", &chatml, NULL,
		0 },
	{ "d039a08fa6d27111d66ad6d7a3cffb375c39b75f53d5336b62c7d2cb653e13ce", "chatml-alternate",
		&chatml, NULL,
		DIALECT_BOS | DIALECT_TRIM | DIALECT_ALTERNATE },
	{ "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788", "smollm2", &chatml,
		"You are a helpful AI assistant named SmolLM, trained by Hugging Face", 0 },
	{ "793202280c0910ab26bc6eb57c8212c2417324c6d8c4efd0d10d59092ab3e3eb", "qwen2", &chatml,
		"You are a helpful assistant.", 0 },
	{ "55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a", "qwen2.5", &chatml,
		"You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", 0 },
	{ "f3714f7117c9d447db80ceb3fcb67a64ba08d149dd4434fe53add9c7f1dd344b", "qwen2.5", &chatml,
		"You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", 0 },
	{ "ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", "llama3", &llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM },
	{ "bc213ef03ac49e40c58b11933b109235e63d25f13e7cd4df966c577966d2345e", "llama3", &llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM },
	{ "b48c47f6443892716176eb200bf4ef108f64e06ca26ed0fa8ebc0a4b3992fcb2", "llama3", &llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM | DIALECT_ALWAYS_PROMPT },
	{ "2245cc67c534ac1546810b7b816ee2f61c2bab7a19034d7134b3883d340aebdb", "llama3-alternate",
		&llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM | DIALECT_ALTERNATE },
	{ "93c0e9aa3629bbd77e68dbc0f5621f6e6b23aa8d74b932595cdb8d64684526d7", "llama3.1", &llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM | DIALECT_DATES },
	{ "d82792f95932f1c9cef5c4bd992f171225e3bf8c7b609b4557c9e1ec96be819f", "llama3.2", &llama3, NULL,
		DIALECT_BOS | DIALECT_TRIM | DIALECT_DATES },
};

/* What a model gets that has no template of its own; these are rows of the table above. */
static const char chatml_text[] =
	"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n"
	"' + message['content'] + '<|im_end|>' + '\n"
	"'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n"
	"' }}{% endif %}";
static const char llama3_text[] =
	"{% set loop_messages = messages %}{% for message in loop_messages %}"
	"{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n"
	"'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = "
	"bos_token + content %}"
	"{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
	"{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

const struct dialect *dialect_find(const char *sha256)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].sha256, sha256))
			return &known[i];
	return NULL;
}

const char *dialect_text(const char *name)
{
	if (!strcmp(name, "chatml"))
		return chatml_text;
	return strcmp(name, "llama3") ? NULL : llama3_text;
}

const char *dialect_token(const struct dialect *d, size_t i)
{
	static const char *const of_chatml[] = { "<|im_start|>", "<|im_end|>" };
	static const char *const of_llama3[] = { "<|start_header_id|>", "<|end_header_id|>",
		"<|eot_id|>" };

	if (d->turns == &chatml)
		return i < 2 ? of_chatml[i] : NULL;
	return i < 3 ? of_llama3[i] : NULL;
}
