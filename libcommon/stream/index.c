#include "libcommon/stream/internal.h"

#include <stdlib.h>

/*
 * The seekable format of zstd's contrib/: a skippable frame with the sizes of all frames, found
 * from its end.
 */
enum { SEEK_SKIPPABLE = 0x184D2A5E, SEEK_HEAD = 8 };

int index_add_frame(struct stream_index *x, struct frame_size f, struct err *err)
{
	if (grow(&x->frames, &x->frames_cap, x->nframes + 1, sizeof(*x->frames), err) < 0)
		return -1;
	x->frames[x->nframes++] = f;
	return 0;
}

int index_add_entry(struct stream_index *x, uint64_t record, uint64_t offset, struct err *err)
{
	if (grow(&x->at, &x->at_cap, x->nat + 1, sizeof(*x->at), err) < 0)
		return -1;
	x->at[x->nat++] = (struct index_entry){ record, offset };
	return 0;
}

int index_encode(const struct stream_index *x, uint64_t nrecords, struct buf *out, struct err *err)
{
	msgpack_packer pk;
	uint64_t every = 0;
	size_t i;

	for (i = 0; i < x->nat; i++) {
		uint64_t n = (i + 1 < x->nat ? x->at[i + 1].record : nrecords) - x->at[i].record;

		every = n > every ? n : every;
	}
	msg_packer(&pk, out);
	msg_begin(&pk, "indx", 2);
	msg_put_str(&pk, "every");
	msgpack_pack_uint64(&pk, every);
	msg_put_str(&pk, "at");
	msgpack_pack_array(&pk, x->nat);
	for (i = 0; i < x->nat; i++) {
		msgpack_pack_array(&pk, 2);
		msgpack_pack_uint64(&pk, x->at[i].record);
		msgpack_pack_uint64(&pk, x->at[i].offset);
	}
	return buf_ok(out, err);
}

int index_decode(struct stream_index *x, const msgpack_object *map, struct err *err)
{
	const msgpack_object *at = msg_get(map, "at"), *e;
	uint32_t i;

	if (!at || at->type != MSGPACK_OBJECT_ARRAY)
		return err_set(err, EX_DATAERR, "indx: 'at' must be a list");
	for (i = 0; i < at->via.array.size; i++) {
		e = at->via.array.ptr[i].via.array.ptr;
		if (at->via.array.ptr[i].type != MSGPACK_OBJECT_ARRAY ||
			at->via.array.ptr[i].via.array.size != 2 ||
			e[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
			e[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
			return err_set(err, EX_DATAERR, "indx: 'at'[%u] must be [record, offset]", i);
		if (i ? e[0].via.u64 <= x->at[i - 1].record || e[1].via.u64 <= x->at[i - 1].offset
			  : e[0].via.u64 != 0)
			return err_set(err, EX_DATAERR, "indx: 'at'[%u] is out of order", i);
		if (index_add_entry(x, e[0].via.u64, e[1].via.u64, err) < 0)
			return -1;
	}
	return 0;
}

static void put_u32(struct buf *out, uint32_t v)
{
	char b[4] = { (char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24) };

	buf_put(out, b, 4);
}

void seek_table_encode(const struct stream_index *x, struct buf *out)
{
	size_t i;

	put_u32(out, SEEK_SKIPPABLE);
	put_u32(out, (uint32_t)(x->nframes * 8 + SEEK_FOOT_SIZE));
	for (i = 0; i < x->nframes; i++) {
		put_u32(out, x->frames[i].packed);
		put_u32(out, x->frames[i].plain);
	}
	put_u32(out, (uint32_t)x->nframes);
	buf_putc(out, 0);
	put_u32(out, SEEK_MAGIC);
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

bool seek_foot_decode(const uint8_t *foot, uint64_t file_size, struct seek_foot *f)
{
	f->nframes = get_u32(foot);
	f->entry = foot[4] & 0x80 ? 12 : 8;
	f->table = SEEK_HEAD + f->nframes * f->entry + SEEK_FOOT_SIZE;
	return get_u32(foot + 5) == SEEK_MAGIC && f->nframes <= SEEK_FRAMES_MAX &&
		f->table <= file_size;
}

int seek_table_decode(
	struct stream_index *x, const uint8_t *table, const struct seek_foot *f, struct err *err)
{
	const uint8_t *p = table + SEEK_HEAD;
	uint64_t i;

	if (get_u32(table) != SEEK_SKIPPABLE || get_u32(table + 4) != f->table - SEEK_HEAD)
		return err_set(err, EX_DATAERR, "damaged seek table");
	for (i = 0; i < f->nframes; i++, p += f->entry)
		if (index_add_frame(x, (struct frame_size){ get_u32(p), get_u32(p + 4) }, err) < 0)
			return -1;
	return 0;
}

void index_release(struct stream_index *x)
{
	free(x->frames);
	free(x->at);
	*x = (struct stream_index){0};
}
