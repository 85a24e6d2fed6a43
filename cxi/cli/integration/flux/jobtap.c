// A plugin for the job manager of Flux's system instance: before a job starts, cxi job reserve decides which VNIs it
// has, and when it ends, cxi job release ends it; its VNIs are free when all its nodes have destroyed their services.
//
//     cc -shared -fPIC -O2 -o cxi.so jobtap.c $(pkg-config --cflags --libs flux-core jansson)
//
// The decision is the job's event cray-slingshot, as the shell plugin of flux-coral2 expects it. What went wrong is an
// exception of the type slingshot: fatal without VNIs, a warning without hardware collectives. Nothing is kept here.
// What a restart of Flux interrupts, cxi job sweep ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <flux/core.h>
#include <flux/jobtap.h>
#include <jansson.h>

static char env[] = "/usr/bin/env";
static char config[] = "CXI_CONFIG=/etc/cxi/cxi.toml";
static char cxi[] = "/usr/bin/cxi";
static const char prolog[] = "cxi";
static const char event[] = "cray-slingshot";
static const char exception[] = "slingshot";

extern char **environ;

// A command that runs for a job.
struct command {
    struct command *next;
    flux_plugin_t *plugin;
    flux_jobid_t job;
    pid_t pid;
    bool reserves;
    // The job has ended before it had VNIs.
    bool ended;
    bool failed;
    int output;
    flux_watcher_t *watcher;
    // What it has printed so far.
    char text[65536];
    size_t length;
};

// The commands that run, so that they go with the plugin.
struct commands {
    struct command *first;
};

static void release (flux_plugin_t *p, flux_jobid_t job);

static void drop (struct command *command)
{
    struct commands *all = flux_plugin_aux_get (command->plugin, "commands");
    struct command **at = &all->first;

    while (*at && *at != command)
        at = &(*at)->next;
    if (*at)
        *at = command->next;
    flux_watcher_destroy (command->watcher);
    close (command->output);
    // Unless the broker has waited for it already.
    if (command->pid > 0)
        waitpid (command->pid, NULL, 0);
    free (command);
}

static void drop_all (void *arg)
{
    struct commands *all = arg;

    for (struct command *one = all->first, *next; one; one = next) {
        next = one->next;
        flux_watcher_destroy (one->watcher);
        close (one->output);
        free (one);
    }
    free (all);
}

// Passes on an object that a command has printed, and returns whether that was the result.
static bool tell (struct command *command, json_t *said)
{
    flux_plugin_t *p = command->plugin;
    flux_t *h = flux_jobtap_get_flux (p);
    json_t *vnis;
    const char *text;
    bool done = true;

    if (command->reserves && json_unpack (said, "{s:o}", "vnis", &vnis) == 0) {
        if (flux_jobtap_event_post_pack (p, command->job, event, "{s:O}", "vnis", vnis) < 0)
            flux_jobtap_raise_exception (p, command->job, exception, 0, "cannot post the event %s: %s", event, strerror (errno));
    } else if (json_unpack (said, "{s:{s:s}}", "error", "message", &text) == 0) {
        flux_log (h, LOG_ERR, "slingshot: %" PRIu64 ": %s", command->job, text);
        command->failed = true;
        if (command->reserves)
            flux_jobtap_raise_exception (p, command->job, exception, 0, "%s", text);
    } else if (json_unpack (said, "{s:{s:s}}", "warning", "message", &text) == 0) {
        flux_log (h, LOG_WARNING, "slingshot: %" PRIu64 ": %s", command->job, text);
        if (command->reserves)
            flux_jobtap_raise_exception (p, command->job, exception, LOG_WARNING, "%s", text);
        done = false;
    }
    return done;
}

// A command has ended.
static void finish (struct command *command)
{
    flux_plugin_t *p = command->plugin;
    flux_jobid_t job = command->job;
    bool done = false, failed, ended, reserves = command->reserves;
    size_t at = 0;
    json_error_t place;

    for (json_t *said; (said = json_loadb (command->text + at, command->length - at, JSON_DISABLE_EOF_CHECK, &place));) {
        done |= tell (command, said);
        json_decref (said);
        at += place.position;
    }
    if (!done && reserves)
        flux_jobtap_raise_exception (p, job, exception, 0, "cxi job reserve ended without a result");
    else if (!done)
        flux_log (flux_jobtap_get_flux (p), LOG_ERR, "slingshot: %" PRIu64 ": cxi job release ended without a result", job);
    // A job that has ended is no longer known when its release is done.
    if (reserves)
        flux_jobtap_job_aux_delete_value (p, job, command);
    failed = !done || command->failed;
    ended = command->ended;
    drop (command);
    if (reserves)
        flux_jobtap_prolog_finish (p, job, prolog, failed ? 1 : 0);
    if (ended)
        release (p, job);
}

static void output_cb (flux_reactor_t *r, flux_watcher_t *w, int revents, void *arg)
{
    struct command *command = arg;
    size_t room = sizeof (command->text) - command->length;
    // What is too long is no result.
    ssize_t got = room > 0 ? read (command->output, command->text + command->length, room) : 0;

    if (got > 0)
        command->length += got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        finish (command);
}

static int start (struct command *command, char *const arguments[])
{
    flux_reactor_t *r = flux_get_reactor (flux_jobtap_get_flux (command->plugin));
    struct commands *all = flux_plugin_aux_get (command->plugin, "commands");
    posix_spawn_file_actions_t files;
    int error, ends[2];

    if (pipe2 (ends, O_CLOEXEC) < 0)
        return -1;
    fcntl (ends[0], F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2 (&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2 (&files, ends[1], STDERR_FILENO);
    error = posix_spawn (&command->pid, env, &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy (&files);
    close (ends[1]);
    if (error != 0)
        command->pid = 0;
    command->output = ends[0];
    command->next = all->first;
    all->first = command;
    if (error == 0 && (command->watcher = flux_fd_watcher_create (r, ends[0], FLUX_POLLIN, output_cb, command))) {
        flux_watcher_start (command->watcher);
        return 0;
    }
    drop (command);
    errno = error ? error : ENOMEM;
    return -1;
}

static struct command *command_for (flux_plugin_t *p, flux_jobid_t job)
{
    struct command *command = calloc (1, sizeof (*command));

    if (command) {
        command->plugin = p;
        command->job = job;
    }
    return command;
}

static void release (flux_plugin_t *p, flux_jobid_t job)
{
    struct command *command = command_for (p, job);
    char name[64];

    flux_job_id_encode (job, "f58plain", name, sizeof (name));
    if (!command || start (command, (char *[]){ env, config, cxi, "--json", "job", "release", name, NULL }) < 0)
        flux_log_error (flux_jobtap_get_flux (p), "slingshot: %s: cannot run %s job release", name, cxi);
}

// The job's nodes, with commas between; NULL if that fails.
static char *nodes_of (json_t *list)
{
    char *all = strdup ("");
    size_t index;
    json_t *one;

    json_array_foreach (list, index, one) {
        char *more = NULL;
        if (!all || asprintf (&more, "%s%s%s", all, index ? "," : "", json_string_value (one)) < 0)
            more = NULL;
        free (all);
        all = more;
    }
    return all;
}

static int run_cb (flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *arg)
{
    json_t *list, *options = NULL, *hwcoll = NULL;
    struct command *command = NULL;
    char job[64], uid[16], count[16], *nodes = NULL;
    char *words[] = { env, config, cxi, "--json", "job", "reserve", job, "--uid", uid, "--nodes", NULL, NULL, NULL, NULL, NULL };
    flux_jobid_t id;
    int userid, vnis = -1, next = 11;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I s:i s:{s:{s:o}} s:{s:{s:{s?{s?{s?o}}}}}}",
                                "id", &id, "userid", &userid, "R", "execution", "nodelist", &list,
                                "jobspec", "attributes", "system", "shell", "options", event, &options) < 0) {
        flux_jobtap_raise_exception (p, FLUX_JOBTAP_CURRENT_JOB, exception, 0, "invalid job: %s", flux_plugin_arg_strerror (args));
        return 0;
    }
    // -o cray-slingshot=off, or -o cray-slingshot.vnicount=N, -o cray-slingshot.hwcoll
    if (json_is_string (options) && strcmp (json_string_value (options), "off") == 0)
        vnis = 0;
    else if (json_is_object (options) && json_unpack (options, "{s?i s?o}", "vnicount", &vnis, "hwcoll", &hwcoll) < 0)
        vnis = 256; // which cxi refuses
    flux_job_id_encode (id, "f58plain", job, sizeof (job));
    snprintf (uid, sizeof (uid), "%u", (unsigned)userid);
    snprintf (count, sizeof (count), "%d", vnis);
    words[10] = nodes = nodes_of (list);
    if (vnis != -1) {
        words[next++] = "--vnis";
        words[next++] = count;
    }
    if (json_is_true (hwcoll) || json_integer_value (hwcoll) != 0)
        words[next++] = "--network=hwcoll";
    if (!nodes || !(command = command_for (p, id)) || flux_jobtap_prolog_start (p, prolog) < 0) {
        free (command);
        goto error;
    }
    command->reserves = true;
    if (start (command, words) < 0) {
        flux_jobtap_prolog_finish (p, id, prolog, 1);
        goto error;
    }
    flux_jobtap_job_aux_set (p, id, prolog, command, NULL);
    free (nodes);
    return 0;
error:
    flux_jobtap_raise_exception (p, id, exception, 0, "cannot run %s job reserve: %s", cxi, strerror (errno));
    free (nodes);
    return 0;
}

static int cleanup_cb (flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *arg)
{
    struct command *command = flux_jobtap_job_aux_get (p, FLUX_JOBTAP_CURRENT_JOB, prolog);
    flux_jobid_t id;
    json_t *resources = NULL;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I s?o}", "id", &id, "R", &resources) < 0)
        return -1;
    if (command)
        command->ended = true;
    else if (resources) // it has run
        release (p, id);
    return 0;
}

// When Flux was restarted while the job ended, nobody knows whether the release was done. A second one does nothing.
static int new_cb (flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *arg)
{
    flux_jobid_t id;
    int state;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I s:i}", "id", &id, "state", &state) < 0)
        return -1;
    if (state == FLUX_JOB_STATE_CLEANUP)
        release (p, id);
    return 0;
}

static const struct flux_plugin_handler handlers[] = {
    { "job.new", new_cb, NULL },
    { "job.state.run", run_cb, NULL },
    { "job.state.cleanup", cleanup_cb, NULL },
    { 0 },
};

int flux_plugin_init (flux_plugin_t *p)
{
    struct commands *all = calloc (1, sizeof (*all));

    if (!all || flux_plugin_aux_set (p, "commands", all, drop_all) < 0) {
        free (all);
        return -1;
    }
    return flux_plugin_register (p, "cxi", handlers);
}
