"""Has the answer of a command written into a page of an attribute that was not read yet.

usage: page.py DEVICE ATTRIBUTE
"""

import ctypes
import errno
import mmap
import os
import struct
import sys

DEV_INFO_GET = 52

device = os.open(sys.argv[1], os.O_RDWR)
attribute = os.open(sys.argv[2], os.O_RDONLY)
try:
    page = mmap.mmap(attribute, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
except OSError as error:
    # Attributes cannot be mapped at all: just as well.
    assert error.errno == errno.ENODEV, error
    print("ok")
    sys.exit()
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
os.write(device, struct.pack("=IxxxxQ", DEV_INFO_GET, address))
print("ok")
