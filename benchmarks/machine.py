"""The measured machine: processor, disk, flush time, versions; and a check that the disk is not memory."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def file_system(path: Path) -> str:
    """Return the type of the file system of `path`: the type of the longest mount point above."""
    real = str(path.resolve())
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, mount, type_of_mount, *_rest = line.split(" ")
        mount = mount.encode().decode("unicode_escape")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, type_of_mount
    return kind


def fsync_seconds(directory: Path, count: int = 200) -> float:
    """Return the median time of a write of 4 KB and its flush: the least cost of a durable commit."""
    path = directory / "fsync.probe"
    block = os.urandom(4096)
    times = []
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        for _ in range(count):
            started = perf_counter()
            os.pwrite(descriptor, block, 0)
            os.fsync(descriptor)
            times.append(perf_counter() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(times)


def describe(directory: Path) -> dict[str, object]:
    """Return the facts saved beside the figures, so that two runs can be told apart."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "fileSystem": file_system(directory),
        "fsyncSeconds": fsync_seconds(directory),
        "loadAverage": os.getloadavg()[0],
    }


def versions() -> dict[str, str | None]:
    """Return the versions of the measured software; None for software that is not installed."""
    return {
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        **{name: _installed(name) for name in ("txnctl", "lmdb", "msgpack", "click")},
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
