/* refused WHAT: something that is refused, and what cxi_last_error says of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <libcxi/libcxi.h>
#include <libcxi/cxi_rs.h>

struct cxi_cp_head { unsigned int vni, tc, tc_type, lcid; };
struct cq_opts { unsigned int count, policy, stat_cnt_pool, flags, lcid, lpe_cdt_thresh_id; };
/* The attributes of an event queue, as far as they are used here. */
struct eq_attr { void *queue; unsigned long queue_len, flags, rest[3]; };
#define EQ_PASSTHROUGH 2
int cxil_alloc_evtq(void *lni, void *md, const struct eq_attr *attr, void *event_wait, void *status_wait, void **eq);
int cxil_alloc_lni(struct cxil_dev *dev, void **lni, unsigned int svc_id);
int cxil_alloc_ct(void *lni, void *wb, void **ct);
int cxil_alloc_pte(void *lni, void *eq, void *opts, void **pte);
int cxil_alloc_cp(void *lni, unsigned int vni, unsigned int tc, unsigned int type, struct cxi_cp_head **cp);
int cxil_alloc_cmdq(void *lni, void *eq, const struct cq_opts *opts, void **cq);
int cxil_alloc_domain(void *lni, unsigned int vni, unsigned int pid, void **domain);

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

	rc = cxil_open_device(0, &dev);
	if (!strcmp(what, "open")) {
		printf("%d %s\n", rc, cxi_last_error());
		return 0;
	}
	if (rc) return 2;
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
	} else if (!strcmp(what, "ct") || !strcmp(what, "pte") || !strcmp(what, "txq") || !strcmp(what, "tgq") || !strcmp(what, "domain")) {
		static unsigned long opts;
		struct cxi_cp_head *cp;
		struct cq_opts queue;
		void *first, *second;
		int svc;
		desc.limits.acs.max = 1;
		desc.limits.cts.max = desc.limits.ptes.max = desc.limits.txqs.max = desc.limits.tgqs.max = 1;
		svc = cxil_alloc_svc(dev, &desc, &fail);
		if (svc < 0 || cxil_alloc_lni(dev, &lni, svc)) return 4;
		if (cxil_alloc_cp(lni, 100, CXI_TC_BEST_EFFORT, 0, &cp)) return 5;
		memset(&queue, 0, sizeof queue);
		queue.count = 64;
		queue.lcid = cp->lcid;
		queue.flags = what[1] == 'x' ? 2 : 0;
		for (int i = 0; i < 2; i++) {
			if (!strcmp(what, "ct")) rc = cxil_alloc_ct(lni, NULL, &first);
			else if (!strcmp(what, "pte")) rc = cxil_alloc_pte(lni, NULL, &opts, &first);
			else if (!strcmp(what, "domain")) rc = cxil_alloc_domain(lni, 100, 7, &second);
			else rc = cxil_alloc_cmdq(lni, NULL, &queue, &first);
		}
	} else if (!strcmp(what, "empty")) {
		static struct eq_attr attr;
		static unsigned char byte;
		void *eq;
		attr.queue = &byte;
		attr.flags = EQ_PASSTHROUGH;
		struct cxil_dev *virtual;
		int svc;
		desc.limits.acs.max = desc.limits.eqs.max = 1;
		svc = cxil_alloc_svc(dev, &desc, &fail);
		if (svc < 0 || cxil_open_device(1, &virtual) || cxil_alloc_lni(virtual, &lni, svc)) return 4;
		rc = cxil_alloc_evtq(lni, NULL, &attr, NULL, NULL, &eq);
	} else if (!strcmp(what, "child")) {
		struct cxil_dev *virtual;
		FILE *file = fopen("/sys/class/cxi/cxi0/vf/0/svc_id", "w");
		int svc = cxil_alloc_parent_svc(dev, &desc, &fail);
		if (svc < 0 || !file || cxil_open_device(1, &virtual)) return 4;
		if (cxil_alloc_parent_svc(virtual, &desc, &fail) != -EPERM) return 5;
		fprintf(file, "%d\n", svc);
		if (fclose(file)) return 6;
		svc = cxil_alloc_svc(virtual, &desc, &fail);
		if (svc < 0 || cxil_destroy_svc(virtual, svc)) return 7;
		desc.vnis[0]++;
		rc = cxil_alloc_svc(virtual, &desc, &fail);
	} else if (!strcmp(what, "parent")) {
		rc = cxil_alloc_parent_svc(dev, &desc, &fail);
	} else if (!strcmp(what, "device")) {
		struct cxil_dev *none;
		rc = cxil_open_device(7, &none);
	} else if (!strcmp(what, "service")) {
		struct cxi_svc_desc none;
		rc = cxil_get_svc(dev, 77, &none);
	} else if (!strcmp(what, "use")) {
		struct cxi_rsrc_use none;
		rc = cxil_get_svc_rsrc_use(dev, 77, &none);
	} else if (!strcmp(what, "enable")) {
		rc = cxil_svc_enable(dev, 77, 1);
	} else if (!strcmp(what, "netns") || !strcmp(what, "nothing")) {
		unsigned int netns;
		rc = cxil_svc_get_netns(dev, what[1] == 'e' ? CXI_DEFAULT_SVC_ID : 77, &netns);
	} else if (!strcmp(what, "range")) {
		uint16_t min, max;
		rc = cxil_svc_get_vni_range(dev, CXI_DEFAULT_SVC_ID, &min, &max);
	} else if (!strcmp(what, "counter")) {
		uint64_t value;
		rc = cxil_read_cntr(dev, 0, &value, NULL);
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
