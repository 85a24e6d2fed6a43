/* lied_to SEEDS: every function of libcxi on a kernel that lies (c/liar.c, preloaded), with each seed from
 * 1 to SEEDS. No result is expected: nothing may crash, read or write where it must not, or take for ever.
 * Prints "ok". Needs a node with a NIC and the right to make services. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <libcxi/cxi_rs.h>
#include "cxi_decl.h"

#define DECLARE(name, ret, args) ret name args;
CXI_FUNCTIONS(DECLARE)
/* In no release of HPE's library. */
int cxil_alloc_parent_svc(struct cxil_dev *dev, const struct cxi_svc_desc *desc, struct cxi_svc_fail_info *fail_info);

#define MEMORY (1 << 18)

static unsigned char *memory;

static struct cxi_svc_desc service(void)
{
	struct cxi_svc_desc desc;

	memset(&desc, 0, sizeof desc);
	desc.restricted_vnis = 1;
	desc.num_vld_vnis = 1;
	desc.vnis[0] = 4711;
	desc.enable = 1;
	desc.resource_limits = 1;
	for (int i = 0; i < CXI_RSRC_TYPE_MAX; i++)
		desc.limits.type[i].max = 64;
	desc.limits.tles.max = 0;
	return desc;
}

static void services(struct cxil_dev *dev, int svc)
{
	struct cxi_svc_desc desc = service(), got;
	struct cxi_svc_fail_info info;
	struct cxi_rsrc_use use;
	struct cxil_svc_list *list = NULL;
	struct cxil_svc_rsrc_list *uses = NULL;
	uint16_t min, max;
	unsigned int netns;
	bool exclusive;
	int made = cxil_alloc_svc(dev, &desc, &info);

	cxil_alloc_parent_svc(dev, &desc, &info);
	desc.svc_id = svc;
	cxil_update_svc(dev, &desc, &info);
	cxil_get_svc(dev, svc, &got);
	if (cxil_get_svc_list(dev, &list) == 0)
		cxil_free_svc_list(list);
	if (cxil_get_svc_rsrc_list(dev, &uses) == 0)
		cxil_free_svc_rsrc_list(uses);
	cxil_get_svc_rsrc_use(dev, svc, &use);
	cxil_set_svc_lpr(dev, svc, 2);
	cxil_get_svc_lpr(dev, svc);
	cxil_svc_enable(dev, svc, false);
	cxil_svc_enable(dev, svc, true);
	cxil_svc_set_exclusive_cp(dev, svc, false);
	cxil_svc_get_exclusive_cp(dev, svc, &exclusive);
	cxil_svc_set_vni_range(dev, svc, 64, 127);
	cxil_svc_get_vni_range(dev, svc, &min, &max);
	cxil_svc_set_netns(dev, svc, 1);
	cxil_svc_get_netns(dev, svc, &netns);
	if (made > 0)
		cxil_destroy_svc(dev, made);
}

static void portals(struct cxil_lni *lni, struct cxi_eq *eq, struct cxil_domain *domain)
{
	struct cxi_pt_alloc_opts opts;
	struct cxi_pte_status status;
	struct cxil_pte *pte = NULL;
	struct cxil_pte_map *map = NULL;
	uint64_t offsets[16];

	memset(&opts, 0, sizeof opts);
	if (cxil_alloc_pte(lni, eq, &opts, &pte))
		return;
	if (domain && cxil_map_pte(pte, domain, 3, false, &map) == 0)
		cxil_unmap_pte(map);
	memset(&status, 0, sizeof status);
	cxil_pte_status(pte, &status);
	status.ule_offsets = (void *)offsets;
	status.ule_count = 16;
	cxil_pte_status(pte, &status);
	cxil_invalidate_pte_le(pte, 1, 0);
	cxil_pte_transition_sm(pte, 0);
	cxil_destroy_pte(pte);
}

static void queues(struct cxil_lni *lni, struct cxi_md *md, struct cxi_cp *cp, struct cxil_domain *domain)
{
	struct cxil_wait_obj *wait = NULL;
	struct cxi_eq *eq = NULL;
	struct cxi_cq *cq = NULL;
	struct cxi_ct *ct = NULL;
	struct cxi_eq_attr attr;
	struct cxi_cq_alloc_opts opts;
	struct cxi_cq_alloc_opts_buf buffer;
	unsigned int acknowledged;

	memset(&attr, 0, sizeof attr);
	attr.queue = memory;
	attr.queue_len = 0x4000;
	memset(&opts, 0, sizeof opts);
	opts.count = 64;
	opts.flags = 2;
	opts.lcid = cp ? cp->lcid : 0;
	memset(&buffer, 0, sizeof buffer);
	buffer.opts = opts;
	if (cxil_alloc_wait_obj(lni, &wait) == 0) {
		cxil_get_wait_obj_fd(wait);
		cxil_clear_wait_obj(wait);
	}
	if (cxil_alloc_evtq(lni, md, &attr, wait, NULL, &eq) == 0) {
		cxil_evtq_adjust_reserved_fc(eq, 4);
		cxil_evtq_resize(eq, memory + 0x8000, 0x4000, md);
		cxil_evtq_resize_complete(eq);
	}
	if (cxil_alloc_cmdq(lni, eq, &opts, &cq) == 0) {
		cxil_cmdq_ack_counter(cq, &acknowledged);
		cxil_destroy_cmdq(cq);
	}
	cq = NULL;
	if (cxil_alloc_buf_cmdq(lni, eq, &buffer, &cq) == 0)
		cxil_destroy_cmdq(cq);
	if (cxil_alloc_ct(lni, (void *)(memory + 0x20000), &ct) == 0) {
		cxil_ct_wb_update(ct, (void *)(memory + 0x20040));
		cxil_destroy_ct(ct);
	}
	portals(lni, eq, domain);
	if (eq)
		cxil_destroy_evtq(eq);
	if (wait)
		cxil_destroy_wait_obj(wait);
}

static void objects(struct cxil_dev *dev, int svc)
{
	struct cxil_lni *lni = NULL;
	struct cxi_cp *cp = NULL, *triggered = NULL;
	struct cxil_domain *domain = NULL;
	struct cxi_md *md = NULL;

	if (cxil_alloc_lni(dev, &lni, svc))
		return;
	cxil_alloc_cp(lni, 4711, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, &cp);
	cxil_alloc_trig_cp(lni, 4711, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, 2, &triggered);
	if (cp)
		cxil_modify_cp(lni, cp, 4711);
	cxil_reserve_domain(lni, 4711, 20, 2);
	cxil_alloc_domain(lni, 4711, 511, &domain);
	if (cxil_map(lni, memory, 0x10000, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, NULL, &md) == 0)
		cxil_update_md(md, memory, 0x1000, CXI_MAP_READ | CXI_MAP_WRITE);
	queues(lni, md, cp, domain);
	if (md)
		cxil_unmap(md);
	if (domain)
		cxil_destroy_domain(domain);
	if (triggered)
		cxil_destroy_cp(triggered);
	if (cp)
		cxil_destroy_cp(cp);
	cxil_destroy_lni(lni);
}

/* What the library says of itself, to its end. */
static void says(void)
{
	const char *text = cxi_last_error();

	while (text && *text)
		text++;
	cxil_page_size(memory);
	cxil_is_copy_on_fork();
}

static void device(struct cxil_dev *dev)
{
	struct cxi_sbus_op_params params;
	struct timespec time;
	uint32_t data;
	uint16_t result;
	uint8_t code, overrun;
	/* More than any NIC has. */
	static uint64_t values[4096];
	static const enum c_cntr_type some[] = { 96, 0, 97 };
	uint64_t value;
	int remap;

	memset(&params, 0, sizeof params);
	cxil_inbound_wait(dev);
	cxil_get_amo_remap_to_pcie_fadd(dev, &remap);
	cxil_read_cntr(dev, 96, &value, &time);
	cxil_read_n_cntrs(dev, 3, some, values, &time);
	cxil_read_all_cntrs(dev, values, &time);
	cxil_sbus_op(dev, &params, &data, &code, &overrun);
	cxil_sbus_op_compat(dev, 0, 0, 0, 0, 0, &data, &code, &overrun, 1, 0x81);
	cxil_sbus_op_reset(dev);
	cxil_sbus_op_reset_compat(dev, 0);
	cxil_serdes_op(dev, 0, 0, 0, 0, &result, 0, 0);
	if (cxil_map_csr(dev) == 0) {
		cxil_read_csr(dev, 0, &value, sizeof value);
		cxil_write_csr(dev, 8, &value, sizeof value);
		cxil_write8_csr(dev, 16, 0, &value, sizeof value);
		/* Behind whatever was mapped. */
		cxil_read_csr(dev, 0xfffffff8, &value, sizeof value);
	}
}

int main(int argc, char **argv)
{
	void (*lie)(unsigned int) = (void (*)(unsigned int))dlsym(RTLD_DEFAULT, "lie");
	unsigned int seeds = argc > 1 ? atoi(argv[1]) : 1;

	if (!lie) { printf("no liar is preloaded\n"); return 1; }
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* A loop that a lie keeps going is an error too. */
	alarm(900);
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		struct cxil_device_list *devices = NULL;
		struct cxil_dev *dev = NULL;
		struct cxi_svc_desc desc = service();
		int svc;

		lie(seed);
		if (cxil_get_device_list(&devices) == 0)
			cxil_free_device_list(devices);
		if (cxil_open_device(0, &dev) == 0)
			cxil_close_device(dev);
		/* The rest needs a device and a service that are there. */
		lie(0);
		if (cxil_open_device(0, &dev)) { printf("no device\n"); return 1; }
		svc = cxil_alloc_svc(dev, &desc, NULL);
		if (svc <= 0) { printf("seed %u: no service: %d\n", seed, svc); return 1; }
		lie(seed);
		device(dev);
		services(dev, svc);
		objects(dev, svc);
		says();
		lie(0);
		cxil_close_device(dev);
		/* What lies have left behind is destroyed, so that the next seed finds a NIC like this one. */
		if (cxil_open_device(0, &dev)) { printf("no device\n"); return 1; }
		for (int left = 2; left < 64; left++)
			while (cxil_destroy_svc(dev, left) == -EBUSY)
				usleep(1000);
		cxil_close_device(dev);
	}
	printf("ok\n");
	return 0;
}
