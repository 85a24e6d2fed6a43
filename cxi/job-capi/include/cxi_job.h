/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A job's services on all Slingshot NICs of a node: libcxi_job.so.0, of cxi-job-capi.
 *
 * Arguments and results are JSON, so that they can grow: a program ignores members that it does not
 * know, and a member that the library does not know is an error.
 *
 * Functions return 0 or a negative errno: -EINVAL for NULL, a node that is not open, or JSON that
 * is not as described. A result is one block allocated with malloc: pass it to free(3). On failure, a result is
 * not written, except where the description says so. All functions may be called from several
 * threads, even with the same node.
 */
#ifndef CXI_JOB_H
#define CXI_JOB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The NICs of a node, as they were when it was opened. */
typedef struct cxi_job_node cxi_job_node;

/* Finds and opens all NICs. `options` is NULL or
 *   {"lock": "/run/cxi/node.lock", "lock_wait_ms": 60000}
 * where every program that changes services on the node names the same lock file: this is the one of the
 * commands and of the CNI plugin, unless the setting node.lock names another. Without a lock,
 * no program waits for another. -ENODEV if there is no NIC. */
int cxi_job_node_open(const char *options, cxi_job_node **node);

/* Forgets a node; its services stay. Calls that use it in other threads end first. */
int cxi_job_node_close(cxi_job_node *node);

/* Creates one service on each NIC, or none at all; needs CAP_SYS_ADMIN. `request`:
 *   {"uid": 1000, "gid": 1000, "netns": 4026531840,    who: one of them, or uid and gid
 *    "vnis": [1024],  or "vni_range": {"first": 1024, "last": 1031}
 *    "traffic_classes": ["LOW_LATENCY"],                default: it and BEST_EFFORT
 *    "cores": 64,                                       size of the job; default: no limits
 *    "policy": "hpe",  or "slurm"                       resources for each core; default: "hpe"
 *    "scale_back": 1,                                   take what is available, but enough for this many cores
 *    "nics_at_least": 2,                                use the NICs that can be used, at least this many
 *    "lnis_per_rgid": 4}
 * Repeating the request adopts existing services. `granted` becomes {"grant": {...}}: keep it until the
 * end of the job, for cxi_job_environment and cxi_job_release. */
int cxi_job_allocate(const cxi_job_node *node, const char *request, char **granted);

/* The variables of a job that was granted this, each "NAME=VALUE", the last one NULL: the array and
 * its strings are one block. Queries no NIC, and needs no privilege. */
int cxi_job_environment(const char *granted, char ***variables);

/* Destroys a job's services on all NICs; needs CAP_SYS_ADMIN. `job` is what cxi_job_allocate wrote,
 * or {"vnis": [...], "uid": ..., "gid": ..., "netns": ...}: services with exactly these VNIs, for
 * these members. A service that is in use is tried again for `deadline_ms`. 0: nothing is left, and the
 * VNIs may be reused here. -EBUSY: some are still in use. -EIO: some cannot be destroyed. In all
 * three cases `report` says what became of each service; it may be NULL. */
int cxi_job_release(const cxi_job_node *node, const char *job, uint64_t deadline_ms,
		    char **report);

/* Like cxi_job_allocate, with a record of the job on this node, for `cxi job` and for the cleanup of a
 * node whose scheduler was killed. `job`:
 *   {"place": {"settings": "/etc/cxi/cxi.toml",        default: that file, if it exists
 *              "node": "n1", "job": "4711",            this node and the job in the scheduler
 *              "component": "4712"},                   of a heterogeneous job
 *    "request": {"cores": 64}}                         as for cxi_job_allocate
 * Without VNIs in the request, waits for what the site's controller decides (`cxi job reserve`).
 * `granted` becomes {"grant": {...}, "warnings": [...]}; the grant is null for a job that wants no VNI.
 * Call cxi_job_epilog at the end of the job. On failure, the job has no services and no record, except
 * for what cxi_job_explain lists. */
int cxi_job_prolog(const cxi_job_node *node, const char *job, char **granted);

/* Ends a recorded job on this node: destroys its services, confirms that to the controller, and removes
 * the record. `job` is the "place" of cxi_job_prolog. Results as for cxi_job_release; a job with services still in use
 * stays recorded, and is tried again by the next call or by `cxi job clean`. */
int cxi_job_epilog(const cxi_job_node *node, const char *job, uint64_t deadline_ms,
		   char **report);

/* The variables of a step of a recorded job. `step`:
 *   {"place": {...},                                   as for cxi_job_prolog
 *    "step": "0"}                                      default: every step
 * `variables` becomes {"set": {"NAME": "VALUE"}, "clear": ["NAME"]}: those of `clear` are removed first.
 * With hardware collectives, those of the step and its token are among them. Queries no NIC, and needs
 * no privilege other than the job's user's. */
int cxi_job_step(const char *step, char **variables);

/* The pool of VNIs of the site's controller, in a file or in etcd as the settings say. `options` is
 * NULL or
 *   {"settings": "/etc/cxi/cxi.toml", "vnis": "1024-65535", "rest_ms": 30000, "lead": true}
 * where "vnis" creates the pool, or changes its VNIs and how long a VNI rests before it is used again
 * (default: not at all). "lead" then takes the lead of a pool in etcd, as `cxi vni lead` does: only
 * this machine can change it from then on. A controller does so when it starts.
 * `report`, if not NULL, becomes
 *   {"total": 64512, "free": 64510, "reserved": 1, "draining": 1, "resting": 0, "outside": 0}
 * where "outside" counts VNIs that jobs have and that are no longer in the pool.
 * -ENOENT, here and from the controller's functions below: there is no pool. -EIO,
 * likewise: another machine has taken the lead of the pool in etcd. */
int cxi_job_pool(const char *options, char **report);

/* The controller decides what a job gets, once for all its nodes: VNIs from the pool and, if the
 * settings say so, trees for hardware collectives from the fabric manager. `job`:
 *   {"settings": "/etc/cxi/cxi.toml", "job": "4711", "component": "4712",
 *    "uid": 1000, "nodes": "n[1-2]",
 *    "network": "job_vni",                             the user's options, as of Slurm's --network
 *    "vnis": 2,                                        instead of what the options and the settings say
 *    "tenant": "physics"}
 * Waits for VNIs as long as the setting controller.wait says. Repeating it returns the same decision.
 * `decision` becomes {"decision": {"job": "4711", "vnis": [1024], ...}, "warnings": [...]}.
 * Then cxi_job_prolog without VNIs gives each node what was decided. */
int cxi_job_reserve(const char *job, char **decision);

/* The controller ends a job: its VNIs return to the pool when all of its nodes have confirmed.
 * `ending`:
 *   {"settings": ..., "job": "4711", "component": "4712"}, or
 *   {"settings": ..., "live": ["4711"]}                all jobs but those that the scheduler knows
 * and `report`, if not NULL, becomes {"ended": ["4711"], "warnings": [...]}. */
int cxi_job_end(const char *ending, char **report);

/* Confirms to the controller for a node that is gone for good that a job has left nothing on it; nodes do
 * that themselves in cxi_job_epilog. `place` is that of cxi_job_prolog. */
int cxi_job_confirm(const char *place);

/* Destroys what ended jobs left behind; needs CAP_SYS_ADMIN. `policy`:
 *   {"place": {"settings": "/etc/cxi/cxi.toml", "node": "n1"}, "pool": "1024-65535",
 *    "live": "1024,1030", "live_from": "/run/my-scheduler", "none_live": false, "foreign": false,
 *    "dry_run": false}
 * The place is that of cxi_job_prolog, whose records it reads; by default the usual settings, and the name
 * of this machine. Destroys the services that records of ended jobs name, and confirms to the controller.
 * Services with a VNI of the pool (by default the setting pool.vnis) that no record names are reported as
 * "foreign" and left; "foreign": true destroys them too, unless it is the VNI of a live job. "live" lists
 * VNIs that are known before the call: no other job may start in the meantime. "live_from" is a
 * directory with a file NAME.vnis ("1030\n") for each job, which is read after the services are listed:
 * a job whose file exists before its services is safe. Results as for cxi_job_release, with "orphans",
 * "kept", "ended" and "broken" (records that cannot be used, which are put aside). */
int cxi_job_clean(const cxi_job_node *node, const char *policy, uint64_t deadline_ms,
		  char **report);

/* The jobs with a record on a node, of which a user other than root sees their own. `place` is NULL or
 *   {"settings": "/etc/cxi/cxi.toml", "node": "n1"}
 * and `jobs` becomes {"jobs": [{"job": "4711", "state": "running", "vnis": [1024], "vni_range": null,
 * "members": [...]}], "broken": ["..."]}: a job that has "ended" has services that are still in use, and
 * "broken" says what is wrong with records that cannot be used. Queries no NIC. */
int cxi_job_list(const char *place, char **jobs);

/* Reports problems with the services of a node. `options` is NULL or
 *   {"place": {"settings": "/etc/cxi/cxi.toml", "node": "n1"}, "pool": "1024-65535"}
 * With a place, which is that of cxi_job_clean, also services that no record names ("foreign"; needs root,
 * who can read all records), missing NICs, and what else the settings of the node ask for. */
int cxi_job_audit(const cxi_job_node *node, const char *options, char **report);

/* The last call of this thread that failed, as
 *   {"errno": 28, "text": "...", "nics": [{"device": "cxi0", "explanations": [{"device": "cxi0",
 *     "problem": "...", "reasons": [...], "holders": [...], "advice": [...]}]}], "left": ["..."]}
 * where `left` names the services that a failed allocation could not destroy. -ENOENT if no call has
 * failed. */
int cxi_job_explain(char **explanation);

/* Its text alone, on one or more lines; "" if no call has failed. Never NULL. The string belongs to the
 * library, and is valid until the next call of this library in this thread. */
const char *cxi_job_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
