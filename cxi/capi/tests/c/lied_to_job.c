/* lied_to_job SEEDS: the functions of libcxi_job that ask NICs, on a kernel that lies (c/liar.c, preloaded).
 * As lied_to.c: nothing may crash, read or write where it must not, or take for ever. Prints "ok". */
#define _GNU_SOURCE
#include <cxi_job.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REQUEST "{\"uid\": 1000, \"vnis\": [4711], \"cores\": 1}"

/* Frees a text, whose bytes are looked at first. */
static void done(char *text)
{
	size_t length = 0;

	while (text && text[length])
		length++;
	free(text);
}

static void explain(int result)
{
	char *text = NULL;

	if (result && cxi_job_explain(&text) == 0)
		done(text);
}

int main(int argc, char **argv)
{
	void (*lie)(unsigned int) = (void (*)(unsigned int))dlsym(RTLD_DEFAULT, "lie");
	unsigned int seeds = argc > 1 ? atoi(argv[1]) : 1;

	if (!lie) { printf("no liar is preloaded\n"); return 1; }
	alarm(900);
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		cxi_job_node *node = NULL;
		char *granted = NULL, *report = NULL, **variables = NULL;

		/* Half of the nodes are honest while they are opened. */
		lie(seed % 2 ? seed : 0);
		int opened = cxi_job_node_open(NULL, &node);
		explain(opened);
		lie(seed);
		if (opened == 0) {
			explain(cxi_job_allocate(node, REQUEST, &granted));
			if (granted) {
				if (cxi_job_environment(granted, &variables) == 0)
					free(variables);
				explain(cxi_job_release(node, granted, 20, &report));
				done(report);
				report = NULL;
			}
			done(granted);
			explain(cxi_job_audit(node, NULL, &report));
			done(report);
			report = NULL;
			explain(cxi_job_clean(node, "{\"pool\": \"4000-5000\", \"none_live\": true}", 20, &report));
			done(report);
			cxi_job_node_close(node);
		}
		lie(0);
	}
	printf("ok\n");
	return 0;
}
