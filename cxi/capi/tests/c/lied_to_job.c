/* lied_to_job SEEDS DIRECTORY: every function of libcxi_job on a kernel that lies (c/liar.c, preloaded), with
 * the records of a site in that directory. As lied_to.c: nothing may crash, read or write where it must not, or
 * take for ever. Prints "ok". */
#define _GNU_SOURCE
#include <cxi_job.h>
#include <dlfcn.h>
#include <limits.h>
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
	const char *error = cxi_job_last_error();
	char *text = NULL;

	while (error && *error)
		error++;
	if (result && cxi_job_explain(&text) == 0)
		done(text);
}

/* A text made of this directory, in one of two places. */
static const char *with(const char *format, const char *directory, unsigned int job)
{
	static char texts[2][2 * PATH_MAX];
	static int last;

	last = !last;
	snprintf(texts[last], sizeof texts[last], format, directory, job);
	return texts[last];
}

static int site(const char *directory)
{
	FILE *file = fopen(with("%s/cxi.toml", directory, 0), "w");

	if (!file)
		return -1;
	fprintf(file, "wait = \"0s\"\n[node]\nrecords = \"%s/jobs\"\n", directory);
	fprintf(file, "[pool]\nfile = \"%s/pool.json\"\n", directory);
	fprintf(file, "[controller]\nrecords = \"%s/decisions\"\n", directory);
	if (fclose(file))
		return -1;
	return cxi_job_pool(with("{\"settings\": \"%s/cxi.toml\", \"vnis\": \"5000-9999\"}", directory, 0), NULL);
}

#define PLACE "{\"settings\": \"%s/cxi.toml\", \"node\": \"n1\", \"job\": \"%u\"}"

/* A job from the controller's decision to the node's confirmation. */
static void recorded(cxi_job_node *node, const char *directory, unsigned int job)
{
	char *text = NULL;

	explain(cxi_job_pool(with("{\"settings\": \"%s/cxi.toml\"}", directory, job), &text));
	done(text);
	text = NULL;
	explain(cxi_job_reserve(with("{\"settings\": \"%s/cxi.toml\", \"job\": \"%u\", \"uid\": 0, \"nodes\": \"n1\"}",
				     directory, job), &text));
	done(text);
	text = NULL;
	explain(cxi_job_prolog(node, with("{\"place\": " PLACE ", \"request\": {\"cores\": 1}}", directory, job), &text));
	done(text);
	text = NULL;
	explain(cxi_job_step(with("{\"place\": " PLACE ", \"step\": \"0\"}", directory, job), &text));
	done(text);
	text = NULL;
	explain(cxi_job_list(with("{\"settings\": \"%s/cxi.toml\"}", directory, job), &text));
	done(text);
	text = NULL;
	explain(cxi_job_epilog(node, with(PLACE, directory, job), 20, &text));
	done(text);
	text = NULL;
	explain(cxi_job_end(with("{\"settings\": \"%s/cxi.toml\", \"job\": \"%u\"}", directory, job), &text));
	done(text);
	explain(cxi_job_confirm(with(PLACE, directory, job)));
}

int main(int argc, char **argv)
{
	void (*lie)(unsigned int) = (void (*)(unsigned int))dlsym(RTLD_DEFAULT, "lie");
	unsigned int seeds = argc > 1 ? atoi(argv[1]) : 1;

	if (!lie || argc != 3) { printf("no liar is preloaded, or no directory given\n"); return 1; }
	if (site(argv[2])) { printf("no site: %s\n", cxi_job_last_error()); return 1; }
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
			recorded(node, argv[2], seed);
			cxi_job_node_close(node);
		}
		lie(0);
	}
	printf("ok\n");
	return 0;
}
