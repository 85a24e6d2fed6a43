/* plugin_host PROLOG_EPILOG SHELL DIRECTORY: a scheduler and its job shell, which load the examples of
 * cxi-job-capi and take a job through its life. */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shell {
	void *job;
	const char *(*record)(void *job, const char *key);
	int (*set_variable)(void *job, const char *name, const char *value);
	void (*log)(void *job, const char *line);
};

static char grant[65536];

static const char *record(void *job, const char *key)
{
	FILE *file = fopen(job, "r");
	assert(!strcmp(key, "cxi.grant") && file);
	grant[fread(grant, 1, sizeof grant - 1, file)] = 0;
	fclose(file);
	return grant;
}

static int set_variable(void *job, const char *name, const char *value)
{
	(void)job;
	printf("task %s=%s\n", name, value);
	return 0;
}

static void print(void *job, const char *line)
{
	(void)job;
	printf("log %s\n", line);
}

static void *load(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return plugin;
}

int main(int argc, char **argv)
{
	assert(argc == 4);
	void *batch = load(argv[1]), *flux = load(argv[2]);
	int (*init)(const char *) = dlsym(batch, "job_init");
	int (*fini)(void) = dlsym(batch, "job_fini");
	int (*prolog)(unsigned, unsigned, unsigned, unsigned, char ***) = dlsym(batch, "job_prolog");
	int (*epilog)(unsigned, unsigned, unsigned) = dlsym(batch, "job_epilog");
	int (*call)(const char *, const struct shell *) = dlsym(flux, "plugin_call");
	char path[4096], **variables;
	struct shell shell = { path, record, set_variable, print };

	assert(!init(argv[3]));
	assert(!prolog(7, 1000, 1024, 4, &variables));
	for (char **variable = variables; *variable; variable++)
		printf("job %s\n", *variable);
	free(variables);
	snprintf(path, sizeof path, "%s/job-7.grant", argv[3]);
	assert(!call("shell.init", &shell));
	assert(!call("task.init", &shell));
	assert(!call("task.exit", &shell));
	assert(!call("shell.exit", &shell));
	/* No node has so much. */
	assert(prolog(8, 1001, 1025, 100000, &variables) == -ENOSPC);
	assert(!epilog(7, 1000, 1024));
	/* The grant is gone, and so are the services. */
	assert(!fopen(path, "r"));
	assert(!epilog(7, 1000, 1024));
	assert(!fini());
	assert(fini() == -EINVAL);
	assert(!dlclose(batch) && !dlclose(flux));
	printf("end\n");
	return 0;
}
