"""Of several rows of one key an upsert stores the one of the highest order (no Spark, no store)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidValue
from txnctl.spark.sink.latest_rows import OrderedRow, latest

KEYS = st.sampled_from([b"a", b"b", b"c"])


def stored(rows: Sequence[OrderedRow]) -> dict[bytes, bytes | None]:
    pairs = list(latest(lambda: rows))
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


@given(
    rows=st.lists(
        st.builds(OrderedRow, KEYS, st.none() | st.binary(max_size=2), st.integers(0, 5)), max_size=12
    )
)
def test_the_row_of_the_highest_order_stays(rows: list[OrderedRow]) -> None:
    """Wherever it stands; where two have the highest order, which one is later is not known."""
    highest = {row.key: max(other.order or 0 for other in rows if other.key == row.key) for row in rows}
    winners = [row for row in rows if row.order == highest[row.key]]
    if len(winners) > len(highest):
        with pytest.raises(InvalidValue, match="neither is the later one"):
            stored(rows)
    else:
        assert stored(rows) == {row.key: row.value for row in winners}


def test_two_rows_of_a_key_without_an_order_are_refused() -> None:
    """Single ones are not."""
    rows = [OrderedRow(b"a", b"1", None), OrderedRow(b"b", None, None)]
    assert stored(rows) == {b"a": b"1", b"b": None}
    with pytest.raises(
        InvalidValue, match="two rows of the batch have key a; which is the later one"
    ) as error:
        stored([*rows, OrderedRow(b"a", b"1", None)])
    assert "orderColumn" in (error.value.hint or "")
