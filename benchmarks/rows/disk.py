"""D1: bytes on disk for each byte of payload."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.contract import targets_of
from benchmarks.engine import Engine
from benchmarks.payload import Payload
from benchmarks.report import Comparison

_BATCH = 1000
_SIZES = (100, 1024)


def bytes_per_payload_byte(bench: Bench) -> Iterator[Comparison]:
    """D1. Blocks that the file system has allocated for the whole store, an empty store's included."""
    for target, size in zip(targets_of("D1"), _SIZES, strict=True):
        payload = Payload(_BATCH, size)
        batches = max(1, bench.sizes.disk_payload_bytes // (_BATCH * size))
        with bench.scratch() as directory:
            engine = Engine(directory / "store")
            for _ in range(batches):
                engine.append(payload.batch())
            engine.close()
            allocated = _allocated(directory / "store")
        stored = batches * _BATCH * size
        yield Comparison(
            target, allocated / stored, details={"allocatedBytes": allocated, "payloadBytes": stored}
        )


def _allocated(directory: Path) -> int:
    files = (
        Path(directory_path) / name
        for directory_path, _directories, names in os.walk(directory)
        for name in names
    )
    return sum(file.stat().st_blocks * 512 for file in files)
