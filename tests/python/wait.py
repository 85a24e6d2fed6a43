"""Sleeps on a wait object of a CXI device until its interrupt comes.

usage: wait.py DEVICE WAKE ARGUMENT...    (WAKE ARGUMENT... CLIENT WAIT sends the interrupt)
"""

import ctypes
import os
import select
import struct
import subprocess
import sys

LNI_ALLOC, SVC_ALLOC, WAIT_ALLOC, WAIT_FREE = 1, 28, 23, 24
RESTRICTED_VNIS, RESOURCE_LIMITS = 2, 8

path, wake = sys.argv[1], sys.argv[2:]
device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
answer = ctypes.create_string_buffer(256)
address = ctypes.addressof(answer)


def send(layout, *fields):
    command = struct.pack(layout, *fields)
    assert os.write(device, command) == len(command)


service = struct.pack("<BBH", RESTRICTED_VNIS | RESOURCE_LIMITS, 1, 5).ljust(72, b"\0")
send("<IIQ72s", SVC_ALLOC, 0, address, service)
(svc_id,) = struct.unpack_from("<I", answer)
send("<IIQ", LNI_ALLOC, svc_id, address)
(lni,) = struct.unpack_from("<I", answer)
send("<IIQII", WAIT_ALLOC, 0, address, lni, 0)
client, wait = struct.unpack_from("<II", answer)

clients = f"/sys/class/cxi_user/{os.path.basename(path)}/clients"
assert os.listdir(clients) == [str(client)]
assert os.listdir(f"{clients}/{client}/wait") == [str(wait)]
interrupt = os.open(f"{clients}/{client}/wait/{wait}/intr", os.O_RDONLY)
poll = select.poll()
poll.register(interrupt, select.POLLPRI | select.POLLERR)

assert poll.poll(0), "ready before the first read"
assert os.read(interrupt, 16) == b"\n"
assert not poll.poll(0), "nothing came yet"
for _ in range(3):
    sleeper = subprocess.Popen(["sh", "-c", 'sleep 0.05; exec "$@"', "sh"] + wake
                               + [str(client), str(wait)])
    ((ready, events),) = poll.poll(20000)
    assert ready == interrupt and events & select.POLLPRI, events
    assert poll.poll(0), "ready until it is read"
    assert os.pread(interrupt, 1, 0) == b"\n"
    assert not poll.poll(0), "armed again"
    assert sleeper.wait() == 0

send("<IIQII", WAIT_FREE, 0, address, wait, 0)
assert os.listdir(f"{clients}/{client}/wait") == []
other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
assert sorted(os.listdir(clients)) == sorted([str(client), str(client + 1)])
os.close(other)
assert os.listdir(clients) == [str(client)]
os.close(device)
assert os.listdir(clients) == []
print("ok")
