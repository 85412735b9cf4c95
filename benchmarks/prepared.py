"""A filled store for reads: filled in memory where possible, then copied to the measured disk.

Filling takes hundreds of thousands of durable commits, which are not measured; in memory a flush costs nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.engine import TOPIC
from storage import Store

_MEMORY = Path("/dev/shm")


@contextmanager
def prepared(bench: Bench, fill: Callable[[Store], None]) -> Iterator[Store]:
    """Open a filled store with one topic."""
    with bench.scratch() as directory:
        final_path = directory / "store"
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else directory
        with tempfile.TemporaryDirectory(dir=memory) as name:
            memory_path = Path(name) / "store"
            Store.create(memory_path)
            with Store.open(memory_path) as store:
                store.create_topic(TOPIC)
                fill(store)
            shutil.copytree(memory_path, final_path)
        with Store.open(final_path) as store:
            yield store
