"""The sum of the rows of a write: equal for equal rows in any order and division, different for different rows."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from storage.topic.batching import columns_of
from txnctl.spark.sink.content_sum import as_text, joined, sum_of

Row = tuple[bytes | None, bytes | None, dict[str, str], int | None]

ROWS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=3),
        st.none() | st.binary(max_size=3),
        st.dictionaries(st.text("ab", max_size=2), st.text("ab", max_size=2), max_size=2),
        st.none() | st.integers(0, 3),
    ),
    max_size=5,
)


def total(rows: list[Row], target: str = "t") -> int:
    if not rows:
        return 0
    values, keys, properties, times = zip(*rows, strict=True)
    return sum_of(target, columns_of(values, keys, properties, times))


@given(ROWS, ROWS, st.randoms())
def test_equal_rows_have_an_equal_sum_and_no_others(
    rows: list[Row], others: list[Row], chance: random.Random
) -> None:
    """Divided anywhere, in any order; compared with other rows as multisets."""
    shuffled = chance.sample(rows, len(rows))
    cut = chance.randint(0, len(rows))
    assert joined([total(shuffled[:cut]), total(shuffled[cut:])]) == total(rows)
    is_same = sorted(map(repr, rows)) == sorted(map(repr, others))
    in_order = [(value, key, dict(sorted(pairs.items())), time) for value, key, pairs, time in rows]
    assert total(in_order) == total(rows)
    if not is_same and sorted(map(repr, in_order)) != sorted(
        repr((value, key, dict(sorted(pairs.items())), time)) for value, key, pairs, time in others
    ):
        assert total(rows) != total(others)


def test_the_target_counts_and_the_text_has_32_digits() -> None:
    """The same row in two topics is two rows."""
    row: list[Row] = [(b"v", None, {}, None)]
    assert total(row, "t") != total(row, "u")
    assert len(as_text(total(row))) == len(as_text(0)) == 32
