"""Let the kernel refuse one system call of a child, as a failing disk does: a seccomp filter, which needs no rights.

A call that is never made is never refused: so a test with a refused call proves that the call is made.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_CALLS = {"fsync": (74, 82), "fdatasync": (75, 83), "pwrite": (18, 68), "unlinkat": (263, 35)}
"""Numbers on x86-64, and on the machines with the numbers of asm-generic (aarch64, riscv64)."""

_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _FIRST_ARGUMENT_AT = 0, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def refuse(call: str, descriptor: int | None = None) -> None:
    """Let `call` fail with EIO from now on, in this thread and those it starts; with `descriptor`, there only."""
    number = _CALLS[call][os.uname().machine != "x86_64"]
    conditions = [(_NUMBER_AT, number)] + ([] if descriptor is None else [(_FIRST_ARGUMENT_AT, descriptor)])
    lines = []
    for at, (offset, value) in enumerate(conditions):
        to_the_end = 2 * (len(conditions) - at) - 1
        lines += [(_LOAD, 0, 0, offset), (_JUMP_IF_EQUAL, 0, to_the_end, value)]
    lines += [(_RETURN, 0, 0, _FAIL | errno.EIO), (_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    assert libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0) == 0, os.strerror(ctypes.get_errno())


def synchronous(path: str) -> list[int]:
    """The descriptors of this process on a file whose every write waits for the disk (O_DSYNC)."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        if os.path.realpath(f"/proc/self/fd/{name}") == os.path.realpath(path):
            with open(f"/proc/self/fdinfo/{name}") as info:
                flags = int(dict(line.split(":", 1) for line in info)["flags"], 8)
            if flags & os.O_DSYNC:
                found.append(int(name))
    return found
