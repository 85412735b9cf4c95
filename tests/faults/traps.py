"""System calls of a process, seen one by one: `syscalls.c`, compiled once and loaded into the process under test.

`install` turns every call from then on into a trap, which costs nothing until `arm` says what to do with them: count
them, kill the process before the N-th or in the middle of it, refuse the N-th or all from there on, or record them. A
process forked afterwards inherits the filter, and arms for itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent


class Mode(IntEnum):
    """Fates of a call; the numbers of `enum mode`."""

    OFF = 0
    COUNT = 1
    KILL = 2
    KILL_HALF = 3
    """Kill in the middle: a write has written half."""
    FAIL_ONE = 4
    FAIL_FROM = 5
    """Refuse the N-th call and every later one."""
    RECORD = 6


class Calls(IntFlag):
    """Kinds of calls; the numbers of `enum kind`."""

    READS = 1
    CHANGES = 2
    OPENS = 4
    OTHERS = 8
    STREAMS = 16
    """Calls on standard input, output and error."""
    FILES = READS | CHANGES | OPENS
    EVERY = 31


def compiled(name: str) -> str:
    """The path of a library, compiled from the C file of this name unless that was done before.

    Raises:
        subprocess.CalledProcessError: `cc` refused the file.
        FileNotFoundError: there is no `cc`.
    """
    source = SOURCES / f"{name}.c"
    mark = hashlib.sha256(source.read_bytes() + os.uname().machine.encode()).hexdigest()[:16]
    place = Path(tempfile.gettempdir(), f"txnctl-faults-{os.getuid()}")
    place.mkdir(mode=0o700, exist_ok=True)
    library = place / f"{name}-{mark}.so"
    if not library.exists():
        made = f"{library}.{os.getpid()}"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, str(source)], check=True)
        os.rename(made, library)
    return str(library)


class Traps:
    """The traps of this process.

    Args:
        library: the path of the compiled `syscalls.c`.
    """

    def __init__(self, library: str) -> None:
        # PyDLL keeps the interpreter's lock: only the armed thread runs between arming and the next line of Python.
        self._c = ctypes.PyDLL(library)
        self._c.trap_arm.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._c.trap_mark.argtypes = [ctypes.c_char_p, ctypes.c_long]
        self._c.trap_mapped.argtypes = [ctypes.c_long, ctypes.c_char_p, ctypes.c_long]
        for name in ("trap_count", "trap_hit"):
            getattr(self._c, name).restype = ctypes.c_long

    def install(self) -> None:
        """Turn every system call of this process and its children into a trap, for as long as they live."""
        result = self._c.trap_install()
        if result:
            raise OSError(-result, f"the kernel refuses a seccomp filter: {os.strerror(-result)}")

    def arm(self, mode: Mode, calls: Calls = Calls.EVERY, at: int = 0, error: int = 0, log: int = -1) -> None:
        """Say what becomes of the calls of this process from now on.

        Args:
            at: the number of the call that is killed or refused, from 1 on.
            error: the errno of a refused call.
            log: a descriptor that the record is written to.
        """
        self._c.trap_arm(mode, calls, at, error, log)

    def disarm(self) -> None:
        """Let all calls pass."""
        self._c.trap_disarm()

    def count(self) -> int:
        """Calls that were counted since arming."""
        return int(self._c.trap_count())

    def hit(self) -> int:
        """The number, as of the kernel, of the first call that was refused; -1 for none."""
        return int(self._c.trap_hit())

    def mark(self, text: bytes) -> None:
        """Write a line of the caller's into the record."""
        self._c.trap_mark(text, len(text))

    def note_mapped(self, path: str) -> None:
        """Write the bytes of a mapped file into the record, as a write that was not flushed."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            self._c.trap_mapped(descriptor, data, len(data))
        finally:
            os.close(descriptor)
