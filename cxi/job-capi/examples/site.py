#!/usr/bin/env python3
"""A job's life at a site, by the module cxi_job alone: site.py DIRECTORY

Needs a node with NICs (cxi-mock run -- python3 site.py DIRECTORY) and CAP_SYS_ADMIN. It plays the
controller and the node n1 of a job on two nodes; n2 fails before its prolog. The pool is a file, or
with CXI_VNI_STORE=etcd in the etcd of CXI_ETCD_ENDPOINTS.
"""

import os
import sys

import cxi_job


def main(directory):
    settings = os.path.join(directory, "cxi.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write("wait = '1s'\n")
        file.write(f"[pool]\nfile = '{directory}/pool.json'\nepoch = '{directory}/epoch'\n")
        file.write(f"[controller]\nrecords = '{directory}/decisions'\n")
        file.write(f"[node]\nrecords = '{directory}/jobs'\nlock = '{directory}/lock'\n")
    here = {"node": "n1", "settings": settings}

    cxi_job.pool(vnis="1024-1039", lead=True, settings=settings)
    decision = cxi_job.reserve("4711", uid=1000, nodes="n[1-2]", settings=settings)
    print("reserved:", decision["vnis"])

    grant = cxi_job.prolog("4711", cores=4, **here)
    print("services on:", *(service["device"] for service in grant["services"]))
    print("environment:", cxi_job.environment("4711", step="0", **here)["set"]["SLINGSHOT_VNIS"])
    print("jobs:", *(f"{job['job']} {job['state']}" for job in cxi_job.list(**here)["jobs"]))
    print("orphans:", len(cxi_job.clean(dry_run=True, **here)["orphans"]))

    print("ended:", *cxi_job.end("4711", settings=settings))
    services = cxi_job.epilog("4711", deadline=1, **here)["services"]
    print("services:", *(service["outcome"]["outcome"] for service in services))
    print("draining:", cxi_job.pool(settings=settings)["draining"])
    cxi_job.confirm("4711", node="n2", settings=settings)
    cxi_job.sweep([], settings=settings)
    print("free:", cxi_job.pool(settings=settings)["free"])

    try:
        cxi_job.prolog("4712", cores=4, **here)
    except cxi_job.Error as error:
        print("refused:", error.strerror.splitlines()[0])


if __name__ == "__main__":
    main(sys.argv[1])
