/* job DIRECTORY: what C programs do with libcxi_job, and what they should not. Needs two NICs. */
#include <assert.h>
#include <cxi_job.h>
#include <errno.h>
#include <libcxi/libcxi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cxil_alloc_lni(struct cxil_dev *dev, void **lni, unsigned int svc_id);
int cxil_destroy_lni(void *lni);

static cxi_job_node *node;
static const char *place;

static void says(const char *text)
{
	if (!strstr(cxi_job_last_error(), text)) {
		printf("expected \"%s\" in \"%s\"\n", text, cxi_job_last_error());
		exit(1);
	}
}

static void has(char *json, const char *text)
{
	if (!json || !strstr(json, text)) {
		printf("expected %s in %s\n", text, json);
		exit(1);
	}
	free(json);
}

static void refused(void)
{
	char *text = NULL, **list = NULL;
	const char *wrong[] = { "", "[", "null", "{\"uid\": 1}", "{\"uid\": 1, \"vnis\": [0]}",
		"{\"uid\": 1, \"vnis\": [5], \"colour\": 1}", "{\"vnis\": [5]}", "\xff" };

	assert(!*cxi_job_last_error());
	assert(cxi_job_explain(&text) == -ENOENT);
	assert(cxi_job_explain(NULL) == -EINVAL);
	assert(cxi_job_node_open(NULL, NULL) == -EINVAL);
	says("node is NULL");
	assert(cxi_job_node_open("{\"look\": 1}", &node) == -EINVAL);
	says("unknown field `look`");
	assert(cxi_job_node_close(NULL) == -EINVAL);
	assert(cxi_job_allocate(NULL, "{}", &text) == -EINVAL);
	assert(cxi_job_release(NULL, "{}", 0, &text) == -EINVAL);
	assert(cxi_job_clean(NULL, "{}", 0, &text) == -EINVAL);
	assert(cxi_job_audit(NULL, NULL, &text) == -EINVAL);
	assert(cxi_job_environment(NULL, &list) == -EINVAL);
	assert(cxi_job_environment("{}", NULL) == -EINVAL);
	assert(cxi_job_environment("{}", &list) == -EINVAL);
	assert(!cxi_job_node_open(NULL, &node));
	assert(cxi_job_allocate(node, NULL, &text) == -EINVAL);
	assert(cxi_job_allocate(node, "{\"uid\": 1, \"vnis\": [5]}", NULL) == -EINVAL);
	assert(cxi_job_release(node, NULL, 0, &text) == -EINVAL);
	assert(cxi_job_release(node, "{}", 0, &text) == -EINVAL);
	assert(cxi_job_clean(node, NULL, 0, &text) == -EINVAL);
	assert(cxi_job_clean(node, "{\"place\": {\"job\": \"1\", \"noed\": \"n1\"}}", 0, &text) == -EINVAL);
	assert(cxi_job_audit(node, NULL, NULL) == -EINVAL);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert(cxi_job_allocate(node, wrong[i], &text) == -EINVAL);
	says("expected UTF-8");
	assert(!text && !list);
	assert(!cxi_job_node_close(node));
	assert(cxi_job_node_close(node) == -EINVAL);
	assert(cxi_job_allocate(node, "{\"uid\": 1, \"vnis\": [5]}", &text) == -EINVAL);
	says("expected an open node");
}

/* What NIC 1 lacks, NIC 0 does not get either. */
static void all_or_none(void)
{
	struct cxil_dev *dev;
	struct cxi_svc_desc desc;
	struct cxi_svc_fail_info fail;
	char *text;
	int svc;

	memset(&desc, 0, sizeof desc);
	desc.restricted_vnis = desc.num_vld_vnis = desc.enable = desc.resource_limits = 1;
	desc.vnis[0] = 2000;
	desc.limits.txqs.max = desc.limits.txqs.res = 1000;
	assert(!cxil_open_device(1, &dev));
	svc = cxil_alloc_svc(dev, &desc, &fail);
	assert(svc > 0);
	assert(cxi_job_allocate(node, "{\"uid\": 1000, \"vnis\": [1024], \"cores\": 64}", &text) == -ENOSPC);
	says("cxi1");
	assert(!cxi_job_explain(&text));
	has(strdup(text), "\"errno\":28");
	has(strdup(text), "\"left\":[]");
	has(text, "\"holders\":[{\"service\":");
	assert(!cxi_job_clean(node, "{\"pool\": \"1024-1999\", \"dry_run\": true}", 0, &text));
	has(text, "\"orphans\":[]");
	assert(!cxil_destroy_svc(dev, svc));
	cxil_close_device(dev);
}

static void life(void)
{
	struct cxil_dev *dev;
	char *grant, *text, **list, name[4200], policy[4300];
	FILE *record;
	void *lni;

	assert(!cxi_job_allocate(node, "{\"uid\": 0, \"vnis\": [1024], \"cores\": 2}", &grant));
	assert(!cxi_job_environment(grant, &list));
	assert(!strcmp(list[0], "SLINGSHOT_VNIS=1024"));
	assert(!strcmp(list[1], "SLINGSHOT_DEVICES=cxi0,cxi1"));
	free(list);
	assert(!cxi_job_audit(node, "{\"pool\": \"5000-6000\"}", &text));
	has(text, "\"outside_pool\"");
	/* One that is in use stays, and the report says so; the other NIC's does not. */
	assert(!cxil_open_device(1, &dev));
	assert(!cxil_alloc_lni(dev, &lni, 2));
	assert(cxi_job_release(node, grant, 50, &text) == -EBUSY);
	says("still in use");
	has(strdup(text), "\"still_busy\"");
	has(text, "\"destroyed\"");
	assert(!cxil_destroy_lni(lni));
	cxil_close_device(dev);
	assert(!cxi_job_release(node, grant, 1000, NULL));
	assert(!cxi_job_release(node, grant, 0, &text));
	has(text, "\"services\":[]");
	free(grant);
	/* What is never released is cleaned up, but not what is in use. */
	assert(!cxi_job_allocate(node, "{\"uid\": 1, \"vnis\": [1025]}", &text));
	free(text);
	assert(!cxi_job_clean(node, "{\"pool\": \"1024-1999\", \"live\": \"1025\"}", 0, &text));
	has(text, "\"live\"");
	snprintf(name, sizeof name, "%s/job.vnis", place);
	assert((record = fopen(name, "w")));
	fprintf(record, "1025\n");
	assert(!fclose(record));
	snprintf(policy, sizeof policy, "{\"pool\": \"1024-1999\", \"live_from\": \"%s\"}", place);
	assert(!cxi_job_clean(node, policy, 0, &text));
	has(text, "\"live\"");
	assert(cxi_job_clean(node, "{\"pool\": \"1024-1999\", \"live_from\": \"/no/such\"}", 0, NULL) == -EIO);
	says("/no/such");
	assert(!unlink(name));
	/* Nothing says who made it: only an order takes it. */
	assert(!cxi_job_clean(node, policy, 0, &text));
	has(strdup(text), "\"foreign\"");
	has(text, "\"orphans\":[]");
	snprintf(policy, sizeof policy, "{\"pool\": \"1024-1999\", \"live_from\": \"%s\", \"foreign\": true}", place);
	assert(!cxi_job_clean(node, policy, 0, &text));
	has(text, "\"in_pool\"");
}

/* With records: a running job's service stays, whatever is ordered, and the other one has no record. */
static void cleaned(const char *job)
{
	char policy[8800], *text, *grant;

	assert(!cxi_job_allocate(node, "{\"uid\": 78, \"vnis\": [1078], \"cores\": 1}", &grant));
	snprintf(policy, sizeof policy, "{\"place\": %s}", job);
	assert(!cxi_job_audit(node, policy, &text));
	has(text, "no record says who made service 3 (uid 78, VNI 1078)");
	assert(!cxi_job_clean(node, policy, 0, &text));
	has(strdup(text), "\"orphans\":[]");
	has(strdup(text), "\"live\"");
	has(text, "\"foreign\"");
	snprintf(policy, sizeof policy, "{\"place\": %s, \"foreign\": true}", job);
	assert(!cxi_job_clean(node, policy, 0, &text));
	has(strdup(text), "\"live\"");
	has(text, "\"in_pool\"");
	assert(!cxi_job_audit(node, policy, &text) == 0);
	says("unknown field `foreign`");
	assert(!cxi_job_release(node, grant, 0, &text));
	has(text, "\"services\":[]");
	free(grant);
}

/* The same with a record: a second prolog adopts, an epilog is done once. */
static void recorded(void)
{
	char path[4200], job[8600], start[8800], *text = NULL;
	FILE *file;

	snprintf(path, sizeof path, "%s/cxi.toml", place);
	file = fopen(path, "w");
	assert(file);
	fprintf(file, "wait = \"0s\"\n[node]\nrecords = \"%s/jobs\"\n", place);
	fprintf(file, "[pool]\nfile = \"%s/pool.json\"\n", place);
	fprintf(file, "[controller]\nrecords = \"%s/decisions\"\n", place);
	assert(!fclose(file));
	snprintf(job, sizeof job, "{\"settings\": \"%s\", \"node\": \"n1\", \"job\": \"7\"}", path);

	/* The controller has decided nothing, and there is no such record. */
	snprintf(start, sizeof start, "{\"place\": %s, \"request\": {\"cores\": 1}}", job);
	assert(cxi_job_prolog(node, start, &text) < 0 && !text);
	assert(cxi_job_prolog(node, "{}", &text) == -EINVAL);
	assert(cxi_job_prolog(node, start, NULL) == -EINVAL);
	assert(cxi_job_prolog(NULL, start, &text) == -EINVAL);
	assert(cxi_job_epilog(node, NULL, 0, NULL) == -EINVAL);
	snprintf(path, sizeof path, "%s/decisions", place);
	assert(!mkdir(path, 0755));
	snprintf(path, sizeof path, "%s/decisions/running", place);
	assert(!mkdir(path, 0755));
	assert(cxi_job_prolog(node, start, &text) == -ENOENT && !text);
	says("no decision of the controller");

	snprintf(start, sizeof start,
		 "{\"place\": %s, \"request\": {\"uid\": 77, \"vnis\": [1077], \"cores\": 1}}", job);
	assert(!cxi_job_prolog(node, start, &text));
	has(text, "\"adopted\":false");
	assert(!cxi_job_prolog(node, start, &text));
	has(text, "\"adopted\":true");
	snprintf(path, sizeof path, "%s/jobs/7.json", place);
	assert(!access(path, R_OK));
	snprintf(path, sizeof path, "{\"settings\": \"%s/cxi.toml\"}", place);
	assert(!cxi_job_list(path, &text));
	has(strdup(text), "\"job\":\"7\",\"state\":\"running\",\"vnis\":[1077]");
	has(text, "\"broken\":[]");
	assert(cxi_job_list(path, NULL) == -EINVAL);
	assert(cxi_job_list("{\"nodes\": 1}", &text) == -EINVAL);
	snprintf(path, sizeof path, "%s/jobs/7.json", place);
	cleaned(job);
	assert(!cxi_job_epilog(node, job, 0, &text));
	has(text, "\"outcome\":\"destroyed\"");
	assert(access(path, R_OK) == -1 && errno == ENOENT);
	assert(!cxi_job_epilog(node, job, 0, &text));
	has(text, "\"services\":[]");
}

/* What the controller is asked that it cannot do. */
static void controller(void)
{
	char site[4300], job[4400], *text = NULL;

	snprintf(site, sizeof site, "{\"settings\": \"%s/cxi.toml\"}", place);
	assert(cxi_job_pool(site, NULL) == -ENOENT);
	says("there is no pool of VNIs");
	assert(cxi_job_pool("{\"vni\": \"7\"}", &text) == -EINVAL && !text);
	assert(cxi_job_reserve(NULL, &text) == -EINVAL);
	assert(cxi_job_reserve("{}", &text) == -EINVAL);
	snprintf(job, sizeof job, "{\"settings\": \"%s/cxi.toml\", \"job\": \"8\"", place);
	snprintf(site, sizeof site, "%s, \"uid\": 7, \"nodes\": \"n[1-2]\"}", job);
	assert(cxi_job_reserve(site, NULL) == -EINVAL);
	assert(cxi_job_reserve(site, &text) == -ENOENT && !text);
	says("there is no pool of VNIs");
	assert(cxi_job_end(NULL, NULL) == -EINVAL);
	assert(cxi_job_end("{}", NULL) == -EINVAL);
	snprintf(site, sizeof site, "%s, \"node\": \"n1\"}", job);
	assert(cxi_job_confirm(NULL) == -EINVAL);
	assert(cxi_job_confirm(site) < 0);
	snprintf(job, sizeof job, "{\"place\": %s, \"step\": \"0\"}", site);
	assert(cxi_job_step(job, NULL) == -EINVAL);
	assert(cxi_job_step(job, &text) < 0 && !text);
}

static void *worker(void *arg)
{
	char request[64], *grant;

	snprintf(request, sizeof request, "{\"uid\": 1000, \"vnis\": [%d]}", 1100 + *(int *)arg);
	for (int i = 0; i < 4; i++) {
		assert(!cxi_job_allocate(node, request, &grant));
		assert(!cxi_job_release(node, grant, 1000, NULL));
		free(grant);
	}
	assert(!*cxi_job_last_error());
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int numbers[2] = { 0, 1 };
	char options[4200];

	assert(argc == 2);
	place = argv[1];
	refused();
	snprintf(options, sizeof options, "{\"lock\": \"%s/lock\", \"lock_wait_ms\": 30000}", argv[1]);
	assert(!cxi_job_node_open(options, &node));
	all_or_none();
	life();
	recorded();
	controller();
	for (int i = 0; i < 2; i++)
		assert(!pthread_create(&threads[i], NULL, worker, &numbers[i]));
	for (int i = 0; i < 2; i++)
		assert(!pthread_join(threads[i], NULL));
	assert(!cxi_job_node_close(node));
	printf("ok\n");
	return 0;
}
