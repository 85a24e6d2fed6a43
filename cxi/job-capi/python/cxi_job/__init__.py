"""Services of jobs on the Slingshot NICs (CXI) of a node, for the tools of a site.

A job's life, by the names of the command ``cxi job``::

    import cxi_job

    cxi_job.reserve("4711", uid=1000, nodes="n[1-2]")      # the controller, once for all nodes
    cxi_job.prolog("4711", cores=64)                       # each node, as root
    cxi_job.environment("4711", step="0")["set"]           # for the job's processes
    cxi_job.epilog("4711", deadline=60)                    # each node, as root
    cxi_job.end("4711")                                    # the controller

Settings are those of ``/etc/cxi/cxi.toml``, unless ``settings`` names another file. :func:`pool` makes
the pool of VNIs. A job without a controller names its VNIs: ``prolog("4711", uid=1000,
vnis=[1024])``. :func:`clean` destroys what ended jobs left on a node, and :func:`list` says which jobs
it has.

This is the C library ``libcxi_job.so.0``: ``cxi_job.h`` describes it. A call that fails raises
:class:`Error`, which is an :class:`OSError`.
"""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Dict, Iterable, List, Optional, TypedDict

__all__ = [
    "Error",
    "clean",
    "confirm",
    "end",
    "environment",
    "epilog",
    "list",
    "pool",
    "prolog",
    "reserve",
    "sweep",
]


class Error(OSError):
    """A call that failed, with its errno and what the library says about it.

    ``report`` says what became of each service, where :func:`epilog` or :func:`clean` could not
    destroy all of them (EBUSY or EIO).
    """

    report: Optional[Dict[str, Any]] = None


class Decision(TypedDict):
    """What a job gets: see :func:`reserve`."""

    job: str
    vnis: List[int]


class Variables(TypedDict):
    """The environment of a step: remove the variables of ``clear``, then set those of ``set``."""

    set: Dict[str, str]
    clear: List[str]


class Job(TypedDict):
    """A job with a record on a node, ``"running"`` or ``"ended"`` with services still in use."""

    job: str
    state: str
    vnis: List[int]
    vni_range: Optional[Dict[str, int]]
    members: List[Dict[str, Any]]


class Jobs(TypedDict):
    """The jobs of a node, and what is wrong with records that cannot be used."""

    jobs: List[Job]
    broken: List[str]


class Pool(TypedDict):
    """How many VNIs a pool has in each state."""

    total: int
    free: int
    reserved: int
    draining: int
    resting: int
    outside: int


def pool(
    *,
    vnis: Optional[str] = None,
    rest: float = 0.0,
    lead: bool = False,
    settings: Optional[str] = None,
) -> Pool:
    """Returns how many VNIs the controller's pool has in each state.

    ``vnis`` ("1024-65535") creates the pool, or changes its VNIs; each rests for ``rest`` seconds before
    it is used again. With ``lead``, this machine is the only one that changes a pool in etcd from then
    on.
    """
    options = _given(settings=settings, vnis=vnis, rest_ms=_milliseconds(rest), lead=lead)
    return _call("pool", _json(options))


def reserve(
    job: str,
    *,
    uid: int,
    nodes: str,
    network: Optional[str] = None,
    vnis: Optional[int] = None,
    component: Optional[str] = None,
    tenant: Optional[str] = None,
    settings: Optional[str] = None,
) -> Decision:
    """Decides for all nodes (``"n[1-2]"``) what a job gets, and reserves its VNIs in the pool.

    ``network`` has the user's options, as Slurm's ``--network``; ``vnis`` is a number of VNIs to get
    instead of what those say. Repeating it returns the same decision. For the site's controller, which
    ends the job with :func:`end`.
    """
    request = _given(
        settings=settings,
        job=job,
        component=component,
        uid=uid,
        nodes=nodes,
        network=network,
        vnis=vnis,
        tenant=tenant,
    )
    return _call("reserve", _json(request))["decision"]


def end(job: str, *, component: Optional[str] = None, settings: Optional[str] = None) -> List[str]:
    """Ends a job for the controller, and returns the jobs that ended.

    Its VNIs return to the pool when all of its nodes have called :func:`epilog`.
    """
    return _call("end", _json(_given(settings=settings, job=job, component=component)))["ended"]


def sweep(live: Iterable[str], *, settings: Optional[str] = None) -> List[str]:
    """Ends all jobs but those of ``live``, which the scheduler knows, and returns the ones that ended.

    It also frees the VNIs of ended jobs whose nodes have confirmed since.
    """
    return _call("end", _json(_given(settings=settings, live=[*live])))["ended"]


def confirm(
    job: str, *, node: str, component: Optional[str] = None, settings: Optional[str] = None
) -> None:
    """Confirms to the controller that a job has left nothing on a node that is gone for good.

    Nodes do that themselves in :func:`epilog`.
    """
    place = _place(job, component, node, settings)
    _check(_LIBRARY.cxi_job_confirm(_json(place)))


def prolog(
    job: str,
    *,
    uid: Optional[int] = None,
    gid: Optional[int] = None,
    vnis: Iterable[int] = (),
    cores: Optional[int] = None,
    scale_back: Optional[int] = None,
    component: Optional[str] = None,
    node: Optional[str] = None,
    settings: Optional[str] = None,
) -> Optional[Dict[str, Any]]:
    """Creates one service on each NIC of this node for a job, or none at all, and records it.

    Without ``vnis``, the job gets what :func:`reserve` decided. ``cores`` is its size here, by which its
    resources are limited; with ``scale_back``, it takes what is available, but enough for this many
    cores. Repeating it adopts the services. Needs root. Returns the grant: ``grant["services"]``; ``None``
    for a job that needs no VNI.
    """
    request = _given(
        uid=uid,
        gid=gid,
        vnis=[*vnis] or None,
        cores=cores,
        scale_back=scale_back,
    )
    starting = {"place": _place(job, component, node, settings), "request": request}
    with _Node() as nics:
        return _call("prolog", nics, _json(starting))["grant"]


def environment(
    job: str,
    *,
    step: Optional[str] = None,
    component: Optional[str] = None,
    node: Optional[str] = None,
    settings: Optional[str] = None,
) -> Variables:
    """Returns the variables of a step of a job that :func:`prolog` has started on this node.

    They are ``SLINGSHOT_VNIS`` and the like, for libfabric. Needs no privilege other than the job's
    user's.
    """
    place = _place(job, component, node, settings)
    return _call("step", _json(_given(place=place, step=step)))


def epilog(
    job: str,
    *,
    deadline: float = 0.0,
    component: Optional[str] = None,
    node: Optional[str] = None,
    settings: Optional[str] = None,
) -> Dict[str, Any]:
    """Ends a job on this node: destroys its services, confirms it to the controller, forgets the job.

    Services that are in use are tried again for ``deadline`` seconds. If some are left, raises
    :class:`Error` with EBUSY, and the job stays recorded: call it again, or :func:`clean`. Needs root.
    Returns what became of each service, ``report["services"]``.
    """
    with _Node() as nics:
        place = _place(job, component, node, settings)
        return _call("epilog", nics, _json(place), ctypes.c_uint64(_milliseconds(deadline)))


def clean(
    *,
    pool: Optional[str] = None,
    live: Optional[str] = None,
    none_live: bool = False,
    foreign: bool = False,
    dry_run: bool = False,
    deadline: float = 0.0,
    node: Optional[str] = None,
    settings: Optional[str] = None,
) -> Dict[str, Any]:
    """Destroys what ended jobs left behind on this node, and returns what it found. Needs root.

    Services that no record names are left, even if they have a VNI of the ``pool`` ("1024-65535");
    with ``foreign``, they are destroyed too, unless their VNI is in ``live`` ("1024,1030"). ``none_live``
    says that no job runs on the node. With ``dry_run``, nothing changes.
    """
    policy = _given(
        place=_given(settings=settings, node=node),
        pool=pool,
        live=live,
        none_live=none_live,
        foreign=foreign,
        dry_run=dry_run,
    )
    with _Node() as nics:
        return _call("clean", nics, _json(policy), ctypes.c_uint64(_milliseconds(deadline)))


def list(*, node: Optional[str] = None, settings: Optional[str] = None) -> Jobs:
    """Returns the jobs that have a record on this node; a user other than root sees their own."""
    return _call("list", _json(_given(settings=settings, node=node)))


def _load() -> ctypes.CDLL:
    """The library beside this file, of the wheel, or else the one that is installed."""
    name = "libcxi_job.so.0"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        library = ctypes.CDLL(beside if os.path.exists(beside) else name)
    except OSError as error:
        raise ImportError(
            f"{error}: install libcxi_job.so.0 (package libcxi-job0), or the wheel of cxi that has it"
        ) from error
    library.cxi_job_last_error.restype = ctypes.c_char_p
    return library


_LIBRARY = _load()
_FREE = ctypes.CDLL(None).free
_FREE.argtypes = [ctypes.c_void_p]


class _Node:
    """The NICs of this node, while a call uses them."""

    def __enter__(self) -> ctypes.c_void_p:
        self.handle = ctypes.c_void_p()
        _check(_LIBRARY.cxi_job_node_open(None, ctypes.byref(self.handle)))
        return self.handle

    def __exit__(self, *_: object) -> None:
        _LIBRARY.cxi_job_node_close(self.handle)


def _call(name: str, *arguments: Any) -> Any:
    """Calls ``cxi_job_NAME``, whose last argument is where its result goes."""
    result = ctypes.c_void_p()
    status = _LIBRARY["cxi_job_" + name](*arguments, ctypes.byref(result))
    report = None
    if result:
        report = json.loads(ctypes.string_at(result))
        _FREE(result)
    _check(status, report)
    return report


def _check(status: int, report: Any = None) -> None:
    if status < 0:
        error = Error(-status, _LIBRARY.cxi_job_last_error().decode())
        error.report = report
        raise error


def _given(**members: Any) -> Dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(value: Dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _place(
    job: str, component: Optional[str], node: Optional[str], settings: Optional[str]
) -> Dict[str, Any]:
    name = node or os.uname().nodename
    return _given(settings=settings, node=name, job=job, component=component)


def _milliseconds(seconds: float) -> int:
    if not 0 <= seconds < 1e9:
        raise ValueError(f"invalid time {seconds}: expected 0 or more seconds")
    return round(seconds * 1000)
