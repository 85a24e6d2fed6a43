#!/usr/bin/env python3
"""A job's life at a site, by libcxi_job.so.0 alone: site.py DIRECTORY

Needs a node with NICs (cxi-mock run -- python3 site.py DIRECTORY) and CAP_SYS_ADMIN. It plays the
controller and the node n1 of a job on two nodes; n2 fails before its prolog. The pool is a file, or
with CXI_VNI_STORE=etcd in the etcd of CXI_ETCD_ENDPOINTS.
"""

import ctypes
import json
import os
import sys

LIBRARY = ctypes.CDLL("libcxi_job.so.0")
LIBRARY.cxi_job_last_error.restype = ctypes.c_char_p
FREE = ctypes.CDLL(None).free
FREE.argtypes = [ctypes.c_void_p]


def argument(value):
    """A request as JSON; numbers and nodes as they are."""
    return json.dumps(value).encode() if isinstance(value, dict) else value


def check(status):
    if status < 0:
        raise OSError(-status, LIBRARY.cxi_job_last_error().decode())


def call(name, *arguments):
    """Calls cxi_job_NAME, whose last argument is where its result goes; returns that."""
    result = ctypes.c_void_p()
    function = LIBRARY["cxi_job_" + name]
    check(function(*map(argument, arguments), ctypes.byref(result)))
    text = ctypes.string_at(result)
    FREE(result)
    return json.loads(text)


def main(directory):
    settings = os.path.join(directory, "cxi.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(f"[pool]\nfile = '{directory}/pool.json'\nepoch = '{directory}/epoch'\n")
        file.write(f"[controller]\nrecords = '{directory}/decisions'\n")
        file.write(f"[node]\nrecords = '{directory}/jobs'\nlock = '{directory}/lock'\n")
    site = {"settings": settings}
    job = {**site, "job": "4711"}
    here = {**job, "node": "n1"}

    call("pool", {**site, "vnis": "1024-1039", "lead": True})
    decision = call("reserve", {**job, "uid": 1000, "nodes": "n[1-2]"})["decision"]
    print("reserved:", decision["vnis"])

    nics = ctypes.c_void_p()
    check(LIBRARY.cxi_job_node_open(None, ctypes.byref(nics)))
    grant = call("prolog", nics, {"place": here, "request": {"cores": 4}})["grant"]
    print("services on:", *(service["device"] for service in grant["services"]))
    print("environment:", call("step", {"place": here, "step": "0"})["set"]["SLINGSHOT_VNIS"])

    print("ended:", *call("end", job)["ended"])
    services = call("epilog", nics, here, ctypes.c_uint64(1000))["services"]
    print("services:", *(service["outcome"]["outcome"] for service in services))
    print("draining:", call("pool", site)["draining"])
    check(LIBRARY.cxi_job_confirm(argument({**job, "node": "n2"})))
    call("end", {**site, "live": []})
    print("free:", call("pool", site)["free"])
    check(LIBRARY.cxi_job_node_close(nics))


if __name__ == "__main__":
    main(sys.argv[1])
