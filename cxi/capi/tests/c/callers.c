/* callers WHAT [LIBRARY]: what programs do that they should not, and many at once.
 *
 *   null     every function with NULL for each pointer, one at a time
 *   twice    handles that are given back twice, and a device that is closed first
 *   threads  eight threads open, list, allocate and close
 *   race     two threads count without a lock: what a race looks like to a tool
 *   life     open, list, get, use, allocate, destroy, close between two calls of getppid
 *   list, map, service COUNT
 *            the services are listed, a page is mapped and unmapped, a service is allocated and
 *            destroyed, COUNT times
 *   counter  a counter is read between two calls of getppid
 *   late     fork protection is asked for after memory has been pinned
 *   fork     a child uses what the parent has, and its own
 *   few      a device is opened with the last descriptor
 *   reload   LIBRARY is loaded and unloaded a thousand times
 *
 * Needs a node with a NIC and the right to make services. Prints what is wrong, then "ok". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cxi_decl.h"

#define DECLARE(name, ret, args) ret name args;
CXI_FUNCTIONS(DECLARE)

static int wrong;

#define EXPECT(call, expected) do { \
	long got_ = (call); \
	if (got_ != (expected)) { wrong++; printf("%s: %ld instead of %ld\n", #call, got_, (long)(expected)); } \
	} while (0)

static unsigned char *memory;
#define QUEUE ((void *)memory)
#define QUEUE_LEN 0x4000

/* Handles of a life. */
static struct cxil_dev *dev;
static struct cxil_lni *lni;
static struct cxi_cp *cp;
static struct cxil_domain *domain;
static struct cxi_md *md;
static struct cxil_wait_obj *wait_obj;
static struct cxi_eq *eq;
static struct cxi_cq *cq;
static struct cxi_ct *ct;
static struct cxil_pte *pte;
static int svc;

static struct cxi_svc_desc service(unsigned int vni)
{
	struct cxi_svc_desc desc;
	memset(&desc, 0, sizeof desc);
	desc.restricted_vnis = 1;
	desc.num_vld_vnis = 1;
	desc.vnis[0] = vni;
	desc.enable = 1;
	desc.resource_limits = 1;
	for (int i = 0; i < CXI_RSRC_TYPE_MAX; i++)
		desc.limits.type[i].max = 64;
	desc.limits.tles.max = 0;
	return desc;
}

static void begin(void)
{
	struct cxi_svc_desc desc = service(4711);
	struct cxi_eq_attr attr;
	struct cxi_cq_alloc_opts opts;
	struct cxi_pt_alloc_opts pt;

	memset(&attr, 0, sizeof attr);
	attr.queue = QUEUE;
	attr.queue_len = QUEUE_LEN;
	memset(&opts, 0, sizeof opts);
	opts.count = 64;
	opts.flags = 2;
	memset(&pt, 0, sizeof pt);
	EXPECT(cxil_open_device(0, &dev), 0);
	svc = cxil_alloc_svc(dev, &desc, NULL);
	if (svc <= 0) { printf("no service: %d\n", svc); exit(1); }
	EXPECT(cxil_alloc_lni(dev, &lni, svc), 0);
	EXPECT(cxil_alloc_cp(lni, 4711, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, &cp), 0);
	opts.lcid = cp->lcid;
	EXPECT(cxil_alloc_domain(lni, 4711, 511, &domain), 0);
	EXPECT(cxil_map(lni, memory, 0x10000, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, NULL, &md), 0);
	EXPECT(cxil_alloc_wait_obj(lni, &wait_obj), 0);
	EXPECT(cxil_alloc_evtq(lni, md, &attr, NULL, NULL, &eq), 0);
	EXPECT(cxil_alloc_cmdq(lni, eq, &opts, &cq), 0);
	EXPECT(cxil_alloc_ct(lni, (void *)(memory + 0x8000), &ct), 0);
	EXPECT(cxil_alloc_pte(lni, eq, &pt, &pte), 0);
}

static void end(void)
{
	EXPECT(cxil_destroy_pte(pte), 0);
	EXPECT(cxil_destroy_ct(ct), 0);
	EXPECT(cxil_destroy_cmdq(cq), 0);
	EXPECT(cxil_destroy_evtq(eq), 0);
	EXPECT(cxil_destroy_wait_obj(wait_obj), 0);
	EXPECT(cxil_unmap(md), 0);
	EXPECT(cxil_destroy_domain(domain), 0);
	EXPECT(cxil_destroy_cp(cp), 0);
	EXPECT(cxil_destroy_lni(lni), 0);
	EXPECT(cxil_destroy_svc(dev, svc), 0);
	cxil_close_device(dev);
}

/* A call: all arguments are words, P says which are pointers. */
typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long);
struct call { const char *name; function f; const char *kinds; long arguments[11]; };
#define CALL(name, kinds, ...) { #name, (function)(void *)name, kinds, { __VA_ARGS__ } }
#define P(pointer) (long)(pointer)

static void nulls(void)
{
	static unsigned char out[4096], desc[256], attr[256];
	static void *handle;
	struct cxi_svc_desc spec = service(4712);

	begin();
	memcpy(desc, &spec, sizeof spec);
	const struct call calls[] = {
		CALL(cxil_get_device_list, "P", P(&handle)), CALL(cxil_open_device, ".P", 0, P(&handle)),
		CALL(cxil_inbound_wait, "P", P(dev)), CALL(cxil_get_amo_remap_to_pcie_fadd, "PP", P(dev), P(out)),
		CALL(cxil_alloc_svc, "PPP", P(dev), P(desc), P(out)), CALL(cxil_update_svc, "PPP", P(dev), P(desc), P(out)),
		CALL(cxil_destroy_svc, "P.", P(dev), 9999), CALL(cxil_get_svc, "P.P", P(dev), svc, P(out)),
		CALL(cxil_get_svc_list, "PP", P(dev), P(&handle)), CALL(cxil_get_svc_rsrc_list, "PP", P(dev), P(&handle)),
		CALL(cxil_get_svc_rsrc_use, "P.P", P(dev), svc, P(out)), CALL(cxil_set_svc_lpr, "P..", P(dev), svc, 1),
		CALL(cxil_get_svc_lpr, "P.", P(dev), svc), CALL(cxil_svc_enable, "P..", P(dev), svc, 1),
		CALL(cxil_svc_set_exclusive_cp, "P..", P(dev), svc, 0), CALL(cxil_svc_get_exclusive_cp, "P.P", P(dev), svc, P(out)),
		CALL(cxil_svc_set_vni_range, "P...", P(dev), svc, 64, 127), CALL(cxil_svc_get_vni_range, "P.PP", P(dev), svc, P(out), P(out)),
		CALL(cxil_svc_set_netns, "P..", P(dev), svc, 0), CALL(cxil_svc_get_netns, "P.P", P(dev), svc, P(out)),
		CALL(cxil_alloc_lni, "PP.", P(dev), P(&handle), svc), CALL(cxil_destroy_lni, "P", P(lni)),
		CALL(cxil_alloc_cp, "P...P", P(lni), 4711, 3, 0, P(&handle)), CALL(cxil_alloc_trig_cp, "P....P", P(lni), 4711, 3, 0, 2, P(&handle)),
		CALL(cxil_destroy_cp, "P", 0), CALL(cxil_modify_cp, "PP.", P(lni), P(cp), 4711),
		CALL(cxil_reserve_domain, "P...", P(lni), 4711, 20, 1), CALL(cxil_alloc_domain, "P..P", P(lni), 4711, 511, P(&handle)),
		CALL(cxil_destroy_domain, "P", 0), CALL(cxil_map, "PP..PP", P(lni), P(memory), 0x1000, 1, P(attr), P(&handle)),
		CALL(cxil_unmap, "P", 0), CALL(cxil_update_md, "PP..", P(md), P(memory), 0x1000, 0),
		CALL(cxil_page_size, "P", P(memory)), CALL(cxil_alloc_cmdq, "PPPP", P(lni), P(eq), P(attr), P(&handle)),
		CALL(cxil_alloc_buf_cmdq, "PPPP", P(lni), P(eq), P(attr), P(&handle)), CALL(cxil_destroy_cmdq, "P", 0),
		CALL(cxil_cmdq_ack_counter, "PP", P(cq), P(out)), CALL(cxil_alloc_evtq, "PPPPPP", P(lni), P(md), P(attr), P(wait_obj), P(wait_obj), P(&handle)),
		CALL(cxil_destroy_evtq, "P", 0), CALL(cxil_evtq_adjust_reserved_fc, "P.", P(eq), 1),
		CALL(cxil_evtq_resize, "PP.P", P(eq), P(memory), QUEUE_LEN, P(md)), CALL(cxil_evtq_resize_complete, "P", P(eq)),
		CALL(cxil_alloc_wait_obj, "PP", P(lni), P(&handle)), CALL(cxil_destroy_wait_obj, "P", 0),
		CALL(cxil_get_wait_obj_fd, "P", P(wait_obj)), CALL(cxil_clear_wait_obj, "P", P(wait_obj)),
		CALL(cxil_alloc_ct, "PPP", P(lni), P(memory + 0x8000), P(&handle)), CALL(cxil_destroy_ct, "P", 0),
		CALL(cxil_ct_wb_update, "PP", P(ct), P(memory + 0x8000)), CALL(cxil_alloc_pte, "PPPP", P(lni), P(eq), P(attr), P(&handle)),
		CALL(cxil_destroy_pte, "P", 0), CALL(cxil_map_pte, "PP..P", P(pte), P(domain), 3, 0, P(&handle)),
		CALL(cxil_unmap_pte, "P", 0), CALL(cxil_invalidate_pte_le, "P..", P(pte), 1, 0),
		CALL(cxil_pte_status, "PP", P(pte), P(out + 2048)), CALL(cxil_pte_transition_sm, "P.", P(pte), 0),
		CALL(cxil_map_csr, "P", P(dev)), CALL(cxil_read_csr, "P.P.", P(dev), 0, P(out), 8),
		CALL(cxil_write_csr, "P.P.", P(dev), 0, P(out), 8), CALL(cxil_write8_csr, "P..P.", P(dev), 0, 0, P(out), 8),
		CALL(cxil_read_cntr, "P.PP", P(dev), 96, P(out), P(out)), CALL(cxil_read_n_cntrs, "P.PPP", P(dev), 1, P(attr), P(out), P(out)),
		CALL(cxil_read_all_cntrs, "PPP", P(dev), 0, P(out)), CALL(cxil_sbus_op, "PPPPP", P(dev), P(attr), P(out), P(out), P(out)),
		CALL(cxil_sbus_op_compat, "P.....PPP..", P(dev), 0, 0, 0, 0, 0, P(out), P(out), P(out), 1, 0x81),
		CALL(cxil_sbus_op_reset, "P", P(dev)), CALL(cxil_sbus_op_reset_compat, "P.", P(dev), 0),
		CALL(cxil_serdes_op, "P....P..", P(dev), 0, 0, 0, 0, P(out), 0, 0),
		CALL(cxil_close_device, "P", 0), CALL(cxil_free_device_list, "P", 0), CALL(cxil_free_svc_list, "P", 0),
		CALL(cxil_free_svc_rsrc_list, "P", 0), CALL(cxil_is_copy_on_fork, "", 0),
	};
	const size_t count = sizeof calls / sizeof *calls;

#define ONE(name, ret, args) + 1
	EXPECT(count, 0 CXI_FUNCTIONS(ONE));
	/* The mock has no SBUS: a caller without room for an answer learns that, too. */
	long refused = cxil_sbus_op(dev, (void *)attr, (void *)out, out, out);
	EXPECT(cxil_sbus_op(dev, (void *)attr, NULL, NULL, NULL), refused);
	for (size_t i = 0; i < count; i++)
		for (size_t p = 0; p < strlen(calls[i].kinds); p++) {
			long a[11];
			if (calls[i].kinds[p] != 'P')
				continue;
			memcpy(a, calls[i].arguments, sizeof a);
			a[p] = 0;
			/* What is optional or free succeeds; nothing may end the process. The first
			 * pointer is the object itself, which no call can do without. */
			int r = calls[i].f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
			int free_of = strstr(calls[i].name, "free_") || strstr(calls[i].name, "close_") || strstr(calls[i].name, "clear_") || strstr(calls[i].name, "page_size");
			if (p == 0 && !free_of && r != -EINVAL) {
				wrong++;
				printf("%s(NULL...): %d\n", calls[i].name, r);
			}
		}
}

static void twice(void)
{
	begin();
	end();
	/* Nothing has been allocated since: what was freed has no other owner yet. */
	EXPECT(cxil_destroy_pte(pte), -EINVAL);
	EXPECT(cxil_destroy_ct(ct), -EINVAL);
	EXPECT(cxil_destroy_cmdq(cq), -EINVAL);
	EXPECT(cxil_destroy_evtq(eq), -EINVAL);
	EXPECT(cxil_destroy_wait_obj(wait_obj), -EINVAL);
	EXPECT(cxil_unmap(md), -EINVAL);
	EXPECT(cxil_destroy_domain(domain), -EINVAL);
	EXPECT(cxil_destroy_cp(cp), -EINVAL);
	EXPECT(cxil_destroy_lni(lni), -EINVAL);
	EXPECT(cxil_inbound_wait(dev), -EINVAL);
	cxil_close_device(dev);
	/* A handle of another kind. */
	begin();
	EXPECT(cxil_destroy_ct((struct cxi_ct *)pte), -EINVAL);
	EXPECT(cxil_destroy_cp((struct cxi_cp *)ct), -EINVAL);
	/* The device goes first: the driver has freed all below it, and says so. */
	cxil_close_device(dev);
	EXPECT(cxil_destroy_pte(pte), -EBADF);
	EXPECT(cxil_destroy_cp(cp), -EBADF);
	EXPECT(cxil_unmap(md), -EBADF);
	EXPECT(cxil_destroy_lni(lni), -EBADF);
	EXPECT(cxil_inbound_wait(dev), -EINVAL);
}

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *shared)
{
	int bad = 0;
	for (int i = 0; i < 40; i++) {
		struct cxil_dev *mine = NULL;
		struct cxil_device_list *devices = NULL;
		struct cxil_svc_list *services = NULL;
		struct cxil_lni *one = NULL, *two = NULL;
		struct cxi_cp *profile = NULL;
		struct cxi_md *pinned = NULL;
		bad += cxil_open_device(0, &mine) != 0;
		bad += cxil_get_device_list(&devices) != 0;
		cxil_free_device_list(devices);
		bad += cxil_get_svc_list(shared, &services) != 0;
		cxil_free_svc_list(services);
		bad += cxil_alloc_lni(mine, &one, svc) != 0;
		bad += cxil_alloc_lni(shared, &two, svc) != 0;
		bad += cxil_alloc_lni(shared, &two, 0) != -EINVAL;
		bad += cxil_alloc_cp(one, 4711, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, &profile) != 0;
		bad += cxil_destroy_cp(profile) != 0;
		bad += cxil_map(one, memory + 0x10000, 0x1000, CXI_MAP_PIN, NULL, &pinned) != 0;
		bad += cxil_unmap(pinned) != 0;
		bad += cxil_destroy_lni(one) != 0;
		bad += cxil_destroy_lni(two) != 0;
		cxil_close_device(mine);
	}
	pthread_mutex_lock(&count_lock);
	wrong += bad;
	pthread_mutex_unlock(&count_lock);
	return NULL;
}

/* No window of a queue is mapped here: valgrind takes a device for a program that it should read. */
static void threads(void)
{
	struct cxi_svc_desc desc = service(4711);
	pthread_t t[8];
	EXPECT(cxil_open_device(0, &dev), 0);
	svc = cxil_alloc_svc(dev, &desc, NULL);
	if (svc <= 0) { printf("no service: %d\n", svc); exit(1); }
	for (int i = 0; i < 8; i++)
		if (pthread_create(&t[i], NULL, work, dev))
			wrong++;
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	EXPECT(cxil_destroy_svc(dev, svc), 0);
	cxil_close_device(dev);
}

/* A function of its own, so that its instructions can be counted. */
static __attribute__((noinline)) void life(void)
{
	struct cxi_svc_desc desc = service(4711), got;
	struct cxi_rsrc_use use;
	struct cxil_svc_list *services = NULL;

	/* Whoever allocates first pays for the heap. */
	void *volatile first = malloc(1);
	free(first);
	getppid();
	EXPECT(cxil_open_device(0, &dev), 0);
	EXPECT(cxil_get_svc_list(dev, &services), 0);
	EXPECT(cxil_get_svc(dev, 1, &got), 0);
	EXPECT(cxil_get_svc_rsrc_use(dev, 1, &use), 0);
	svc = cxil_alloc_svc(dev, &desc, NULL);
	EXPECT(cxil_destroy_svc(dev, svc), 0);
	cxil_free_svc_list(services);
	cxil_close_device(dev);
	getppid();
}

/* Functions of their own, too. */
static struct cxi_svc_desc wanted;

static __attribute__((noinline)) void call_list(void)
{
	struct cxil_svc_list *services = NULL;
	EXPECT(cxil_get_svc_list(dev, &services), 0);
	cxil_free_svc_list(services);
}

static __attribute__((noinline)) void call_map(void)
{
	EXPECT(cxil_map(lni, memory, 0x1000, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, NULL, &md), 0);
	EXPECT(cxil_unmap(md), 0);
}

static __attribute__((noinline)) void call_service(void)
{
	EXPECT(cxil_destroy_svc(dev, cxil_alloc_svc(dev, &wanted, NULL)), 0);
}

static void calls(void (*call)(void), int count)
{
	struct cxi_svc_desc desc = service(4711);

	wanted = service(4712);
	EXPECT(cxil_open_device(0, &dev), 0);
	svc = cxil_alloc_svc(dev, &desc, NULL);
	EXPECT(cxil_alloc_lni(dev, &lni, svc), 0);
	for (int i = 0; i < count; i++)
		call();
	EXPECT(cxil_destroy_lni(lni), 0);
	EXPECT(cxil_destroy_svc(dev, svc), 0);
	cxil_close_device(dev);
}

static void counter(void)
{
	uint64_t value;
	struct timespec ts;
	EXPECT(cxil_open_device(0, &dev), 0);
	getppid();
	EXPECT(cxil_read_cntr(dev, 96, &value, &ts), 0);
	getppid();
	cxil_close_device(dev);
}

/* Memory is pinned before protection is asked for: a line about it goes to standard error. */
static void late(void)
{
	struct cxil_dev *again;
	if (cxil_is_copy_on_fork()) { printf("not needed\n"); exit(0); }
	begin();
	setenv("CXI_FORK_SAFE", "", 1);
	EXPECT(cxil_open_device(0, &again), 0);
	cxil_close_device(again);
	end();
}

static volatile long unlocked;

static void *count(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++)
		unlocked++;
	return NULL;
}

static void race(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, count, (void *)1000))
			wrong++;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void forks(void)
{
	begin();
	pid_t child = fork();
	if (!child) {
		struct cxil_dev *mine = NULL;
		struct cxil_svc_list *services = NULL;
		wrong = 0;
		EXPECT(cxil_get_svc_list(dev, &services), 0);
		cxil_free_svc_list(services);
		EXPECT(cxil_open_device(0, &mine), 0);
		cxil_close_device(mine);
		cxil_close_device(dev);
		fflush(stdout);
		_exit(wrong != 0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	EXPECT(status, 0);
	/* What the child closed is still open here. */
	end();
}

/* Pages that the process has mapped. */
static long mapped(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld", &pages) != 1) { wrong++; printf("no /proc/self/statm\n"); }
	if (f)
		fclose(f);
	return pages;
}

static void reload(const char *library)
{
	long before = 0;
	for (int i = 0; i < 1000; i++) {
		void *l = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		if (!l) { wrong++; printf("%s\n", dlerror()); return; }
		int (*list)(struct cxil_device_list **) = (int (*)(struct cxil_device_list **))dlsym(l, "cxil_get_device_list");
		int (*open)(uint32_t, struct cxil_dev **) = (int (*)(uint32_t, struct cxil_dev **))dlsym(l, "cxil_open_device");
		void (*close)(struct cxil_dev *) = (void (*)(struct cxil_dev *))dlsym(l, "cxil_close_device");
		struct cxil_device_list *devices = NULL;
		struct cxil_dev *d = NULL;
		EXPECT(list(&devices), 0);
		EXPECT(open(0, &d), 0);
		EXPECT(open(77, &d), -ENOENT);
		close(d);
		dlclose(l);
		/* As Slurm does: what belongs to the caller outlives the library. */
		free(devices);
		if (i == 20)
			before = mapped();
	}
	if (mapped() > before) {
		wrong++;
		printf("%ld pages more\n", mapped() - before);
	}
}

static void few(void)
{
	int next = open("/dev/null", O_RDONLY);
	struct rlimit limit = { next + 1, next + 1 };

	close(next);
	EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT(cxil_open_device(0, &dev), 0);
	EXPECT(open("/dev/null", O_RDONLY), -1);
	cxil_close_device(dev);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	memory = mmap(NULL, 0x20000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) { perror("mmap"); return 2; }
	if (!strcmp(what, "null")) nulls();
	else if (!strcmp(what, "twice")) twice();
	else if (!strcmp(what, "threads")) threads();
	else if (!strcmp(what, "race")) race();
	else if (!strcmp(what, "life")) life();
	else if (!strcmp(what, "list") && argc > 2) calls(call_list, atoi(argv[2]));
	else if (!strcmp(what, "map") && argc > 2) calls(call_map, atoi(argv[2]));
	else if (!strcmp(what, "service") && argc > 2) calls(call_service, atoi(argv[2]));
	else if (!strcmp(what, "counter")) counter();
	else if (!strcmp(what, "late")) late();
	else if (!strcmp(what, "fork")) forks();
	else if (!strcmp(what, "few")) few();
	else if (!strcmp(what, "reload") && argc > 2) reload(argv[2]);
	else { fprintf(stderr, "usage: callers null|twice|threads|race|life|counter|late|fork|few, list|map|service COUNT, reload LIBRARY\n"); return 2; }
	if (wrong) { printf("%d wrong\n", wrong); return 1; }
	printf("ok\n");
	return 0;
}
