"""A store that is filled for reading: made in memory where there is some, then copied to the measured disk.

Filling takes hundreds of thousands of durable commits, none of which is measured; in memory they cost no flush.
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
    """An open store with one topic, filled."""
    with bench.scratch() as directory:
        place = directory / "store"
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else directory
        with tempfile.TemporaryDirectory(dir=memory) as name:
            made = Path(name) / "store"
            Store.create(made)
            with Store.open(made) as store:
                store.create_topic(TOPIC)
                fill(store)
            shutil.copytree(made, place)
        with Store.open(place) as store:
            yield store
