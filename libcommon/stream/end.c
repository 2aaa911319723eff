#include "libcommon/stream/internal.h"

#include <string.h>

static int get_count(
	const msgpack_object *map, const char *name, uint64_t *out, bool *has, struct err *err)
{
	const msgpack_object *v = msg_get(map, name);

	*has = v != NULL;
	if (v && v->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return err_set(err, EX_DATAERR, "TEND: '%s' must be a whole number", name);
	if (v)
		*out = v->via.u64;
	return 0;
}

int end_decode(struct stream_end *e, const msgpack_object *map, struct err *err)
{
	const msgpack_object *x = msg_get(map, "xxh64");
	bool has_n;
	uint32_t i;

	*e = (struct stream_end){0};
	if (get_count(map, "n", &e->n, &has_n, err) < 0 ||
		get_count(map, "tokens", &e->tokens, &e->has_tokens, err) < 0 ||
		get_count(map, "trained", &e->trained, &e->has_trained, err) < 0)
		return -1;
	if (!has_n)
		return err_set(err, EX_DATAERR, "TEND: no 'n'");
	if (!x)
		return 0;
	if (x->type != MSGPACK_OBJECT_STR || x->via.str.size != XXH64_HEX - 1)
		goto bad;
	for (i = 0; i < XXH64_HEX - 1; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = memchr(digits, x->via.str.ptr[i], 16);

		if (!d)
			goto bad;
		e->xxh64 = e->xxh64 << 4 | (uint64_t)(d - digits);
	}
	e->has_xxh64 = true;
	return 0;
bad:
	return err_set(err, EX_DATAERR, "TEND: 'xxh64' must be a string of 16 lower-case hex digits");
}

int end_check(const struct stream_end *e, const struct stream_totals *t, struct err *err)
{
	char says[XXH64_HEX], is[XXH64_HEX];

	if (e->n != t->n)
		return err_set(err, EX_DATAERR, "TEND counts %llu records, %llu came",
			(unsigned long long)e->n, (unsigned long long)t->n);
	if (e->has_tokens && e->tokens != t->tokens)
		return err_set(err, EX_DATAERR, "TEND counts %llu tokens, %llu came",
			(unsigned long long)e->tokens, (unsigned long long)t->tokens);
	if (e->has_trained && e->trained != t->trained)
		return err_set(err, EX_DATAERR, "TEND counts %llu trained tokens, %llu came",
			(unsigned long long)e->trained, (unsigned long long)t->trained);
	if (e->has_xxh64 && e->xxh64 != t->xxh64) {
		hash64_hex(e->xxh64, says);
		hash64_hex(t->xxh64, is);
		return err_set(
			err, EX_DATAERR, "damaged: TEND says xxh64 %s, the records have %s", says, is);
	}
	return 0;
}

int end_encode(const struct stream_totals *t, const struct stream_input_sum *inputs, size_t ninputs,
	struct buf *out, struct err *err)
{
	msgpack_packer pk;
	char hex[XXH64_HEX];
	size_t i;

	msg_packer(&pk, out);
	msg_begin(&pk, "TEND", 4 + (ninputs > 0));
	msg_put_str(&pk, "n");
	msgpack_pack_uint64(&pk, t->n);
	msg_put_str(&pk, "tokens");
	msgpack_pack_uint64(&pk, t->tokens);
	msg_put_str(&pk, "trained");
	msgpack_pack_uint64(&pk, t->trained);
	hash64_hex(t->xxh64, hex);
	msg_put_str(&pk, "xxh64");
	msg_put_str(&pk, hex);
	if (ninputs) {
		msg_put_str(&pk, "inputs");
		msgpack_pack_array(&pk, ninputs);
		for (i = 0; i < ninputs; i++) {
			msgpack_pack_map(&pk, 2);
			msg_put_str(&pk, "bytes");
			msgpack_pack_uint64(&pk, inputs[i].bytes);
			hash64_hex(inputs[i].xxh64, hex);
			msg_put_str(&pk, "xxh64");
			msg_put_str(&pk, hex);
		}
	}
	return buf_ok(out, err);
}
