"""Disks of a child process: a small one that is full, and a read-only one, in a mount table of the child's own.

Where the machine forbids mounts, a limit on the size of files and a directory without write permission take their part:
the same operations fail, with other error numbers.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import struct
from contextlib import suppress

_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _PRIVATE, _RECURSIVE = 1, 32, 4096, 1 << 18, 16384
_libc = ctypes.CDLL(None, use_errno=True)


def may_mount() -> bool:
    """Give this process a mount table of its own; False where the machine forbids that."""
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
    return _mount(None, "/", None, _PRIVATE | _RECURSIVE, None)


def mount_small(directory: str, size: str) -> bool:
    """Mount an empty tmpfs on `directory` for this process and its children; False where the machine forbids that."""
    return may_mount() and _mount("tmpfs", directory, "tmpfs", 0, f"size={size},mode=700")


def free_bytes(directory: str) -> int:
    """Bytes left on the disk of `directory`."""
    disk = os.statvfs(directory)
    return disk.f_bfree * disk.f_frsize


def fill(directory: str, sparse: str | None = None) -> str:
    """Make `directory`, with its content, lie on a small disk that is full; tell the way.

    Args:
        sparse: a file in it that becomes one hole.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    copy = directory + ".copy"
    shutil.copytree(directory, copy)
    is_mounted = may_mount() and _mount("tmpfs", directory, "tmpfs", 0, "size=8m,mode=700")
    if is_mounted:
        shutil.copytree(copy, directory, dirs_exist_ok=True)
    if sparse is not None:
        with open(os.path.join(directory, sparse), "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            file.truncate(0)
            file.truncate(size)
    if not is_mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return "limit"
    with suppress(OSError), open(os.path.join(directory, "filler"), "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return "mount"


def write_protect(directory: str) -> str:
    """Make `directory` read-only for this process; tell the way."""
    is_bound = may_mount() and _mount(directory, directory, None, _BIND, None)
    if is_bound and _mount(None, directory, None, _BIND | _REMOUNT | _READ_ONLY, None):
        return "mount"
    for place, _, files in os.walk(directory):
        for name in files:
            os.chmod(os.path.join(place, name), 0o444)
        os.chmod(place, 0o555)
    # Root is an owner without write permission once it has no capabilities.
    _libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24))
    return "mode"


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> bool:
    words = [None if word is None else word.encode() for word in (source, target, kind, data)]
    return bool(_libc.mount(words[0], words[1], words[2], flags, words[3]) == 0)
