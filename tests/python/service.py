"""Allocates, lists, fails and destroys services of a CXI device with os.write and ctypes.

usage: service.py DEVICE
"""

import ctypes
import errno
import os
import sys

SVC_LIST_GET, SVC_ALLOC, SVC_DESTROY, SVC_GET = 27, 28, 29, 45
RESTRICTED_VNIS, RESOURCE_LIMITS = 2, 8


class Member(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("type", ctypes.c_uint32)]


class Limits(ctypes.Structure):
    _fields_ = [("max", ctypes.c_uint16), ("res", ctypes.c_uint16)]


class Service(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint8),
        ("num_vld_vnis", ctypes.c_uint8),
        ("vnis", ctypes.c_uint16 * 4),
        ("tcs", ctypes.c_uint8 * 5),
        ("members", Member * 2),
        ("limits", Limits * 8),
        ("svc_id", ctypes.c_uint32),
    ]


class Alloc(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("resp", ctypes.c_void_p), ("service", Service)]


class AllocAnswer(ctypes.Structure):
    _fields_ = [
        ("svc_id", ctypes.c_uint32),
        ("avail", ctypes.c_uint16 * 8),
        ("no_pools", ctypes.c_uint8 * 3),
    ]


class Get(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("resp", ctypes.c_void_p), ("svc_id", ctypes.c_uint32)]


class List(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint32),
        ("resp", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("list", ctypes.c_void_p),
    ]


class ById(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("id", ctypes.c_uint32)]


assert ctypes.sizeof(Alloc) == 88 and ctypes.sizeof(AllocAnswer) == 24

device = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC)


def send(command):
    """Sends a command; 0 or the errno."""
    try:
        written = os.write(device, bytes(command))
    except OSError as error:
        return error.errno
    assert written == ctypes.sizeof(command), written
    return 0


def allocate(service):
    answer = AllocAnswer(svc_id=0xFFFFFFFF)
    result = send(Alloc(SVC_ALLOC, ctypes.addressof(answer), service))
    return result, answer.svc_id


def services():
    count = ctypes.c_uint32()
    room = (Service * 64)()
    command = List(SVC_LIST_GET, ctypes.addressof(count), 64, ctypes.addressof(room))
    assert send(command) == 0
    return [service.svc_id for service in room[: count.value]]


before = services()
wanted = Service(flags=RESTRICTED_VNIS | RESOURCE_LIMITS, num_vld_vnis=1)
wanted.vnis[0] = 2000
result, svc_id = allocate(wanted)
assert result == 0 and svc_id > 1, (result, svc_id)
assert services() == sorted(before + [svc_id]), services()

got = Service()
assert send(Get(SVC_GET, ctypes.addressof(got), svc_id)) == 0
assert got.svc_id == svc_id and got.vnis[0] == 2000
assert send(Get(SVC_GET, ctypes.addressof(got), 4000)) == errno.EINVAL

wanted.num_vld_vnis = 5
assert allocate(wanted) == (errno.EINVAL, 0)
assert send(Alloc(SVC_ALLOC, 8, Service(flags=RESOURCE_LIMITS))) == errno.EFAULT
(lost,) = set(services()) - set(before) - {svc_id}

assert send(ById(SVC_DESTROY, lost)) == 0
assert send(ById(SVC_DESTROY, svc_id)) == 0
assert send(ById(SVC_DESTROY, svc_id)) == errno.EINVAL
assert services() == before
print("ok")
