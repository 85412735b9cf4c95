"""Range plan: `txnctl/spark/ledger_files/range_plan.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import IsolationLevel, Position, Store
from storage.errors import OffloadInvalid
from storage.process.clock import SYSTEM_CLOCK
from tests.txnctl.spark.offload_steps import COMMITTED, files, fill, rows, span
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.layout import LEDGERS, RANGES
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


@pytest.mark.parametrize("level", list(IsolationLevel))
@pytest.mark.parametrize(
    ("after", "through", "first_index", "stop_index"),
    [
        ((1, -1), (1, 4), 0, None), ((1, 1), (3, 2), 0, None), ((1, 0), (2, 1), 3, 2), ((1, 4), (4, -1), 0, None),
        ((2, 2), (2, 2), 0, None), ((4, 1), (5, 1), 2, 4), ((1, 1), (1, 2), 2, 5),
    ],
)  # fmt: skip
def test_bounds_inside_a_file_are_kept(
    store: Store,
    root: Root,
    level: IsolationLevel,
    after: tuple[int, int],
    through: tuple[int, int],
    first_index: int,
    stop_index: int | None,
):
    """A read that begins or ends within a ledger, or within a batch, gives exactly those messages."""
    fill(store)
    offload(store, "t", root)
    wanted = span(
        store, level, after=Position(*after), through=Position(*through), first_index=first_index,
        stop_index=stop_index,
    )  # fmt: skip
    assert rows(file_partitions(store, [wanted], root.uri)) == rows([wanted])


def test_a_topic_without_messages_has_no_partitions(store: Store, root: Root):
    """And nothing is left in the directory."""
    store.create_topic("t")
    assert file_partitions(store, [span(store, COMMITTED)], root.uri) == []
    assert files(offload(store, "t", root), RANGES) == []


def test_a_range_stays_as_long_as_a_plan_may_have_chosen_it(store: Store, root: Root):
    """Not its own age counts, but for how long its ledgers have been offloaded: until then plans took the range."""
    fill(store, 3)
    pieces = file_partitions(store, [span(store, COMMITTED)], root.uri)
    before = rows(pieces)
    fill(store, 9)
    done = offload(store, "t", root)
    place = Path(root.for_spark(done.directory.path).removeprefix("file://"))
    now_ms, day_s = SYSTEM_CLOCK.wall_ms(), 86_400
    for kind, removed in ((RANGES, 0), (LEDGERS, 1)):
        for file in (place / kind).iterdir():
            os.utime(file, (now_ms / 1000 - 2 * day_s,) * 2)
        assert rows(pieces) == before
        assert upkeep.collect(done.directory, done.manifest, now_ms - day_s * 1000) == removed
    with pytest.raises(OffloadInvalid, match="does not exist"):
        rows(pieces)
