"""Futex: sleep in the kernel until a word of shared memory is woken, by any process of the machine.

Linux alone has it, and its C library has no function for it, so this module makes the system call. Elsewhere, and where
the call is refused, `wait` sleeps for a moment: a caller looks again after every return, whatever woke it.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from struct import Struct, calcsize
from typing import Final

_NUMBERS: Final = {
    "x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "ppc64le": 221, "s390x": 238,
}  # fmt: skip
"""The number of the system call, of 64-bit processes."""

_WAIT: Final = 0
_WAKE: Final = 1
_TIMESPEC: Final = Struct("@ll")
_SLEEP_MAX_S: Final = 0.002
"""Longest sleep where the system call does not serve."""

EVERYONE: Final = (1 << 31) - 1
"""The count for `wake` that wakes all sleepers."""

_Call = Callable[[int, int, int, bytes | None], int]


@cache
def _call() -> _Call | None:
    """Return the system call as a function of address, operation, value and timeout; None on other systems.

    The function returns the kernel's answer, or the negative error number. ctypes releases the interpreter lock.
    """
    number = _NUMBERS.get(os.uname().machine)
    if sys.platform != "linux" or number is None or calcsize("P") != 8:
        return None
    # A command that never waits does not pay for the import.
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_long
    long, pointer, integer = ctypes.c_long, ctypes.c_void_p, ctypes.c_int
    function.argtypes = [long, pointer, integer, ctypes.c_uint, ctypes.c_char_p, pointer, ctypes.c_uint]

    def call(address: int, operation: int, value: int, timeout: bytes | None) -> int:
        answer: int = function(number, address, operation, value, timeout, None, 0)
        return answer if answer >= 0 else -ctypes.get_errno()

    return call


def address_of(data: object) -> int:
    """Return the address of writable mapped memory; valid as long as the memory stays mapped."""
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(data))  # type: ignore[arg-type]


def is_available() -> bool:
    """Whether this system has the system call."""
    return _call() is not None


def wait(address: int, seen: int, seconds: float) -> bool:
    """Sleep until the word of 32 bits at `address` is woken; at once if the word is no longer `seen`.

    A signal ends the sleep too, so that its handler runs: a caller looks again after every return.

    Args:
        seconds: the longest sleep.

    Returns:
        False if the time has passed, or the system cannot tell.
    """
    call = _call()
    answer = -errno.ENOSYS
    if call is not None:
        whole = int(seconds)
        answer = call(address, _WAIT, seen, _TIMESPEC.pack(whole, int((seconds - whole) * 1e9)))
    if answer >= 0 or -answer in (errno.EAGAIN, errno.EINTR):
        return True
    if -answer != errno.ETIMEDOUT:
        time.sleep(min(seconds, _SLEEP_MAX_S))
    return False


def wake(address: int, count: int) -> int:
    """Wake sleepers on the word at `address`, at most `count`; return how many were asleep."""
    call = _call()
    return 0 if call is None else max(call(address, _WAKE, count, None), 0)
