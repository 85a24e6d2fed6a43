/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plugin for a job shell that, as Flux's does, runs as the user, calls a plugin by topic, and
 * starts the tasks. What the job was granted comes from the prolog by way of the job's records.
 *
 *   cc -shared -fPIC -o shell_plugin.so shell_plugin.c -lcxi_job
 *
 * The shell hands in how to read a record of the job and how to set a variable of its tasks. */
#include <cxi_job.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shell {
	void *job;
	const char *(*record)(void *job, const char *key);
	int (*set_variable)(void *job, const char *name, const char *value);
	void (*log)(void *job, const char *line);
};

static char **variables;

static int shell_init(const struct shell *shell)
{
	const char *grant = shell->record(shell->job, "cxi.grant");
	int rc;

	/* A job without a network has none. */
	if (!grant)
		return 0;
	rc = cxi_job_environment(grant, &variables);
	if (rc)
		shell->log(shell->job, cxi_job_last_error());
	return rc;
}

static int task_init(const struct shell *shell)
{
	int rc = 0;

	for (char **variable = variables; variable && *variable && !rc; variable++) {
		char name[64];
		const char *value = strchr(*variable, '=') + 1;

		snprintf(name, sizeof name, "%.*s", (int)(value - *variable - 1), *variable);
		rc = shell->set_variable(shell->job, name, value);
	}
	return rc;
}

static int shell_exit(const struct shell *shell)
{
	(void)shell;
	free(variables);
	variables = NULL;
	return 0;
}

int plugin_call(const char *topic, const struct shell *shell)
{
	static const struct {
		const char *topic;
		int (*call)(const struct shell *shell);
	} handlers[] = {
		{ "shell.init", shell_init },
		{ "task.init", task_init },
		{ "shell.exit", shell_exit },
	};

	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
		if (!strcmp(topic, handlers[i].topic))
			return handlers[i].call(shell);
	return 0;
}
