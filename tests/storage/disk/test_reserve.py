"""The size of the reserve is a setting of the store; a share names the bytes that a change leaves."""

from __future__ import annotations

from pathlib import Path

from storage import Store
from storage.disk import reserve
from storage.disk.reserve import RESERVE_BYTES, RESERVE_BYTES_MIN, ReserveShare


def test_the_size_is_recorded(tmp_path: Path) -> None:
    """A store without a record has the default."""
    Store.create(tmp_path / "store")
    with Store.open(tmp_path / "store") as store:
        with store.connection.view() as view:
            assert reserve.setting(view) == RESERVE_BYTES
        store.connection.write(lambda batch: reserve.set_size(batch, RESERVE_BYTES_MIN))
        with store.connection.view() as view:
            assert reserve.setting(view) == RESERVE_BYTES_MIN


def test_a_part_leaves_some_bytes_and_the_whole_none() -> None:
    """No share may use any."""
    assert ReserveShare.WHOLE.value == 0 < reserve.PART_LEAVES == ReserveShare.PART.value < RESERVE_BYTES_MIN
    assert ReserveShare.NONE.value is None
