/* refused WHAT: something that is refused, and what cxi_last_error says of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <libcxi/libcxi.h>
#include <libcxi/cxi_rs.h>

int cxil_alloc_lni(struct cxil_dev *dev, void **lni, unsigned int svc_id);

static struct cxi_svc_desc service(unsigned int vni)
{
	struct cxi_svc_desc desc;
	memset(&desc, 0, sizeof desc);
	desc.restricted_vnis = 1;
	desc.num_vld_vnis = 1;
	desc.vnis[0] = vni;
	desc.enable = 1;
	desc.resource_limits = 1;
	return desc;
}

int main(int argc, char **argv)
{
	struct cxil_dev *dev;
	struct cxi_svc_desc desc = service(100);
	struct cxi_svc_fail_info fail;
	void *lni;
	const char *what = argc > 1 ? argv[1] : "";
	int rc;

	if (cxil_open_device(0, &dev)) return 2;
	if (*cxi_last_error()) return 3;
	if (!strcmp(what, "short")) {
		desc.limits.txqs.max = desc.limits.txqs.res = 900;
		if (cxil_alloc_svc(dev, &desc, &fail) < 0) return 4;
		desc = service(101);
		desc.limits.txqs.max = desc.limits.txqs.res = 900;
		rc = cxil_alloc_svc(dev, &desc, &fail);
	} else if (!strcmp(what, "limit")) {
		desc.limits.cts.max = 3;
		desc.limits.cts.res = 4;
		rc = cxil_alloc_svc(dev, &desc, &fail);
	} else if (!strcmp(what, "busy")) {
		int svc;
		desc.limits.acs.max = 1;
		svc = cxil_alloc_svc(dev, &desc, &fail);
		if (svc < 0 || cxil_alloc_lni(dev, &lni, svc)) return 4;
		rc = cxil_destroy_svc(dev, svc);
	} else if (!strcmp(what, "lni")) {
		rc = cxil_alloc_lni(dev, &lni, 77);
	} else if (!strcmp(what, "null")) {
		rc = cxil_get_svc(dev, 1, NULL);
	} else {
		return 2;
	}
	printf("%d %s\n", rc, cxi_last_error());
	/* It stands until another call fails. */
	printf("%s\n", cxi_last_error());
	cxil_close_device(dev);
	return 0;
}
