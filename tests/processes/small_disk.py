"""A child's own small disk: a tmpfs in a mount table of the child's own, filled to the last page."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_NEW_MOUNTS, _NEW_USERS, _PRIVATE, _RECURSIVE = 0x20000, 0x10000000, 1 << 18, 16384
_libc = ctypes.CDLL(None, use_errno=True)


def mount(directory: str, size: str) -> bool:
    """Mount an empty tmpfs on `directory` for this process and its children; False where the machine forbids that."""
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_NEW_MOUNTS) and _libc.unshare(_NEW_MOUNTS | _NEW_USERS):
        return False
    with suppress(OSError):
        # Needed in a user namespace of our own only; elsewhere the files refuse a second line.
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    return (
        _libc.mount(None, b"/", None, _PRIVATE | _RECURSIVE, None) == 0
        and _libc.mount(b"tmpfs", directory.encode(), b"tmpfs", 0, f"size={size},mode=700".encode()) == 0
    )


def free_bytes(directory: str) -> int:
    """Bytes left on the disk of `directory`."""
    disk = os.statvfs(directory)
    return disk.f_bfree * disk.f_frsize
