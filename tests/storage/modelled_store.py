"""The store of one example, which a model is compared with."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from storage import Store
from storage.process.clock import ManualClock
from storage.subscription.dispatch import share
from tests.processes import places
from tests.processes.memory import directory_in_memory


class ModelledStore:
    """A store in memory, open, under a clock that only the example moves."""

    def __init__(self) -> None:
        super().__init__()
        with directory_in_memory() as beside:
            self._directory = tempfile.mkdtemp(prefix="model-", dir=os.path.dirname(beside))
        self.path = os.path.join(self._directory, "store")
        self.clock = ManualClock()
        self._began_ns = self.clock.boot_now_ns
        Store.create(self.path, clock=self.clock)
        self.store = Store.open(self.path, clock=self.clock)

    @contextmanager
    def rooms(self) -> Iterator[list[int]]:
        """The room of each look within the block: estimated of counts, in a way that a model need not know."""
        room, seen = share.room, list[int]()

        def noted(topic: Any, opened: Any, size: int) -> int:
            seen.append(room(topic, opened, size))
            return seen[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(share, "room", noted)
            yield seen

    @property
    def now_ns(self) -> int:
        """The store clock, counted by ourselves."""
        return self.clock.boot_now_ns - self._began_ns

    def finish(self) -> None:
        """Verify the store, open and opened again, and remove it."""
        try:
            assert self.store.maintenance.verify_store(full=True) == []
            self.store.close()
            with Store.open(self.path, clock=self.clock) as store:
                assert store.maintenance.verify_store(full=True) == []
        finally:
            self.store.close()
            places.remove(places.name_of(self.path))
            shutil.rmtree(self._directory)
