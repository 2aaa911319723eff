/* load: base weights from a model file, by name. */
#include <stdlib.h>

#include "libcommon/file.h"
#include "state.h"

static int load_param(struct model *m, size_t i, const struct modelfile *f, struct err *err)
{
	const struct param *p = model_param(m, i);
	int src = modelfile_index(f, p->name);
	uint64_t cols = p->ndim == 2 ? p->shape[1] : 1, rows = p->shape[0], at, n;
	uint64_t step = m->nstage / cols ? m->nstage / cols : 1;
	float *buf = NULL;
	int rc = -1;

	if (src < 0)
		return err_set(err, EX_DATAERR, "%s: no tensor '%s'", f->path, p->name);
	if (f->tensors[src].shape[0] != p->shape[0] ||
		(p->ndim == 2 && f->tensors[src].shape[1] != p->shape[1]))
		return err_set(err, EX_DATAERR, "%s: tensor '%s' has another shape than the model",
			f->path, p->name);
	buf = malloc(step * cols * sizeof(*buf));
	if (!buf)
		return err_oom(err, step * cols * sizeof(*buf));
	for (at = 0; at < rows; at += n) {
		n = rows - at < step ? rows - at : step;
		if (modelfile_read_f32(f, (size_t)src, at, n, buf, err) < 0 ||
			model_write(m, i, PARAM_VALUE, at * cols, n * cols, buf, err) < 0)
			goto done;
	}
	file_forget(f->src[src]->data, f->src[src]->bytes);   /* a copy is enough */
	rc = 0;
done:
	free(buf);
	return rc;
}

int model_load(struct model *m, const struct modelfile *f, struct err *err)
{
	size_t i;

	for (i = 0; i < m->units.nparams; i++)
		if (m->units.params[i].src >= 0 && load_param(m, i, f, err) < 0)
			return -1;
	return 0;
}
