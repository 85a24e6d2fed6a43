/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plugin for a batch scheduler that, as Slurm does, calls a prolog as root before the first step
 * of a job and an epilog after its last, perhaps in another process.
 *
 *   cc -shared -fPIC -o prolog_epilog.so prolog_epilog.c -lcxi_job
 *
 * The grant is kept in a file of the directory that job_init names. */
#include <cxi_job.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_MS 5000

static char spool[PATH_MAX];
static cxi_job_node *node;

static void grant_path(char *path, size_t size, unsigned int job)
{
	snprintf(path, size, "%s/job-%u.grant", spool, job);
}

static int complain(const char *what, unsigned int job, int rc)
{
	fprintf(stderr, "%s of job %u: %s\n%s\n", what, job, strerror(-rc), cxi_job_last_error());
	return rc;
}

/* At the start of the daemon. Whoever changes services here takes the lock beside the grants. */
int job_init(const char *directory)
{
	char options[PATH_MAX + 32];

	snprintf(spool, sizeof spool, "%s", directory);
	snprintf(options, sizeof options, "{\"lock\": \"%s/lock\"}", directory);
	return cxi_job_node_open(options, &node);
}

int job_fini(void)
{
	return cxi_job_node_close(node);
}

static int keep(const char *path, const char *grant)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	fputs(grant, file);
	return fclose(file) ? -errno : 0;
}

/* What the job is to have in its environment becomes `variables`, for free(3). */
int job_prolog(unsigned int job, unsigned int uid, unsigned int vni, unsigned int cores,
	       char ***variables)
{
	char path[PATH_MAX + 32], request[256], *grant;
	int rc;

	snprintf(request, sizeof request, "{\"uid\": %u, \"vnis\": [%u], \"cores\": %u}", uid, vni,
		 cores);
	rc = cxi_job_allocate(node, request, &grant);
	if (rc)
		return complain("prolog", job, rc);
	grant_path(path, sizeof path, job);
	rc = keep(path, grant);
	if (!rc)
		rc = cxi_job_environment(grant, variables);
	if (rc) {
		cxi_job_release(node, grant, 0, NULL);
		unlink(path);
	}
	free(grant);
	return rc;
}

static char *kept(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

/* 0: the VNI may be used again on this node. -EBUSY: call it again later. Without a grant, as its
 * prolog was killed, the job's services are found by what they are. */
int job_epilog(unsigned int job, unsigned int uid, unsigned int vni)
{
	char path[PATH_MAX + 32], search[64], *grant;
	int rc;

	grant_path(path, sizeof path, job);
	grant = kept(path);
	snprintf(search, sizeof search, "{\"uid\": %u, \"vnis\": [%u]}", uid, vni);
	rc = cxi_job_release(node, grant ? grant : search, DEADLINE_MS, NULL);
	free(grant);
	if (rc)
		return complain("epilog", job, rc);
	unlink(path);
	return 0;
}
