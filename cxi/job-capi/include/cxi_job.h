/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A job's services on all Slingshot NICs of a node: libcxi_job.so.0, of cxi-job-capi.
 *
 * What goes in and out is JSON, so that it can grow: a program ignores members that it does not
 * know; a member that the library does not know is an error.
 *
 * Functions return 0 or a negative errno: -EINVAL for NULL, a node that is not open, or JSON that
 * is not as described. What they hand out is one block of malloc: give it to free(3). On failure
 * a result is left alone, unless it is said to be written then. All functions may be called from
 * several threads, with the same node too.
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
 *   {"lock": "/run/cxi/lock", "lock_wait_ms": 60000}
 * where all that changes services on the node should name the same lock file. Without one, nobody
 * waits for another. -ENODEV if there is no NIC. */
int cxi_job_node_open(const char *options, cxi_job_node **node);

/* Forgets a node; its services stay. Calls that use it in other threads end first. */
int cxi_job_node_close(cxi_job_node *node);

/* Makes one service on each NIC, on all of them or on none; takes CAP_SYS_ADMIN. `request`:
 *   {"uid": 1000, "gid": 1000, "netns": 4026531840,    who: one of them, or uid and gid
 *    "vnis": [1024],  or "vni_range": {"min": 1024, "max": 1031}
 *    "traffic_classes": ["LOW_LATENCY"],                default: it and BEST_EFFORT
 *    "cores": 64,                                       size of the job; default: no limits
 *    "policy": "hpe",  or "slurm"                       resources for each core; default: "hpe"
 *    "scale_back": 1,                                   take what there is, for so many cores at least
 *    "nics_at_least": 2,                                be content with those that can be used
 *    "lnis_per_rgid": 4}
 * The same request again adopts what is there. `granted` becomes {"grant": {...}}, to be kept until
 * the job's end: for cxi_job_environment, cxi_job_release, and `cxi job epilog --grant FILE`. */
int cxi_job_allocate(const cxi_job_node *node, const char *request, char **granted);

/* The variables of a job that was granted this, each "NAME=VALUE", the last one NULL: the array and
 * its strings are one block. Nothing is asked of a NIC, and no privilege is needed. */
int cxi_job_environment(const char *granted, char ***variables);

/* Destroys a job's services on all NICs; takes CAP_SYS_ADMIN. `job` is what cxi_job_allocate wrote,
 * or {"vnis": [...], "uid": ..., "gid": ..., "netns": ...}: services with exactly these VNIs, for
 * these members. One that is in use is tried again for `deadline_ms`. 0: nothing is left, the VNIs
 * may be used again here. -EBUSY: some are still in use. -EIO: some cannot be destroyed. In all
 * three cases `report` says what became of each service; it may be NULL. */
int cxi_job_release(const cxi_job_node *node, const char *job, uint64_t deadline_ms,
		    char **report);

/* As cxi_job_allocate, with a record of the job on this node, for `cxi job` and for the clean-up of a
 * node whose scheduler was killed. `job`:
 *   {"place": {"settings": "/etc/cxi/cxi.toml",        default: that file, if it exists
 *              "node": "n1", "job": "4711",            this node and the job in the scheduler
 *              "component": "4712"},                   of a heterogeneous job
 *    "request": {"cores": 64}}                         as for cxi_job_allocate
 * Without VNIs in the request, the job gets what the site's controller has decided (`cxi job reserve`),
 * which is waited for. `granted` becomes {"grant": {...}, "warnings": [...]}; the grant is null for a job
 * that wants no VNI. Call cxi_job_epilog at its end. On failure the job has no services and no record,
 * except for what cxi_job_explain lists. */
int cxi_job_prolog(const cxi_job_node *node, const char *job, char **granted);

/* Ends a recorded job on this node: destroys its services, confirms that to the controller, and removes
 * the record. `job` is the "place" of cxi_job_prolog. Results as of cxi_job_release; what is still in use
 * stays recorded, and is tried again by the next call or by `cxi job clean`. */
int cxi_job_epilog(const cxi_job_node *node, const char *job, uint64_t deadline_ms,
		   char **report);

/* Destroys what jobs left behind that have ended; takes CAP_SYS_ADMIN. `policy`:
 *   {"pool": "1024-65535", "live": "1024,1030", "live_from": "/run/cxi", "dry_run": false}
 * Services with a VNI of the scheduler's pool are destroyed, unless it is one of those that live.
 * Those of "live" are known beforehand: no job may start meanwhile that is not among them. Those of
 * "live_from", a directory with a file NAME.vnis ("1030\n") for each job, are read after the services
 * were listed: a job whose file is there before its services are is safe. Results as of
 * cxi_job_release. */
int cxi_job_clean(const cxi_job_node *node, const char *policy, uint64_t deadline_ms,
		  char **report);

/* Says what is wrong with the services of a node. `options` is NULL or {"pool": "1024-65535"}. */
int cxi_job_audit(const cxi_job_node *node, const char *options, char **report);

/* The last call of this thread that failed, as
 *   {"errno": 28, "text": "...", "nics": [{"device": "cxi0", "explanations": [{"device": "cxi0",
 *     "problem": "...", "reasons": [...], "holders": [...], "advice": [...]}]}], "left": ["..."]}
 * where `left` names the services that a failed allocation could not take back. -ENOENT if none has
 * failed. */
int cxi_job_explain(char **explanation);

/* Its text alone, on one or more lines; "" if none has failed. Never NULL. It is the library's and
 * stands until the next call of this library in this thread. */
const char *cxi_job_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
