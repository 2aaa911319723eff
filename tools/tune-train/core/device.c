#include "device.h"

#include <string.h>

int device_open(struct device **d, const char *kind, int threads, struct err *err)
{
	*d = NULL;
	if (!strcmp(kind, "cpu") || !strcmp(kind, "auto"))
		return cpu_device_open(d, threads, err);
	if (!strcmp(kind, "cuda"))
		return err_set(err, EX_NODEVICE,
			"this build has no CUDA device; train.device=cpu (or auto) runs on the CPU");
	return err_set(err, EX_USAGE, "unknown device '%s': cpu, cuda or auto", kind);
}

void device_close(struct device *d)
{
	if (d)
		d->free(d);
}
