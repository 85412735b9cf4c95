"""Which version a reader sees: compared with a list of versions, without a disk."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.table.visibility import (
    ABORTED,
    COMMITTED,
    OPEN,
    Look,
    StoredRow,
    Version,
    latest,
    newest,
    snapshot,
)  # fmt: skip
from storage.txn.options import CheckMode

ME = 77


@st.composite
def rows(draw: st.DrawFn) -> tuple[StoredRow, dict[int, int]]:
    """A row with a finalised version, an intent, or both; and the state of the intent's transaction."""
    low = draw(st.integers(1, 20))
    value = st.one_of(st.none(), st.binary(max_size=3))
    committed = Version(low, 5, draw(value)) if draw(st.booleans()) else None
    if committed is not None and draw(st.booleans()):
        return StoredRow(committed, None), {}
    txn = draw(st.sampled_from([6, ME]))
    state = OPEN if txn == ME else draw(st.sampled_from([OPEN, COMMITTED, ABORTED]))
    intent = Version(low + draw(st.integers(1, 10)), txn, draw(value))
    return StoredRow(committed, intent), {txn: state}


@given(rows(), st.integers(0, 40))
def test_a_snapshot_never_shows_what_is_newer_or_not_committed(
    found: tuple[StoredRow, dict[int, int]], at: int
) -> None:
    """Its own intent aside; an intent in progress at or below it is a push, and only such a one."""
    row, states = found
    seen = snapshot(row, at, ME, states.__getitem__)
    intent = row.intent
    blocks = intent is not None and intent.version <= at and states[intent.txn] == OPEN and intent.txn != ME
    assert (seen is Look.PUSH) == blocks
    if isinstance(seen, Version):
        assert seen.version <= at
        assert seen is row.committed or states[seen.txn] == COMMITTED or seen.txn == ME


@given(rows(), st.integers(0, 40))
def test_a_snapshot_shows_the_newest_of_what_it_may_show(
    found: tuple[StoredRow, dict[int, int]], at: int
) -> None:
    """What is older than the row itself is said to be elsewhere."""
    row, states = found
    allowed = [row.committed] if row.committed is not None else []
    if row.intent is not None and (row.intent.txn == ME or states[row.intent.txn] == COMMITTED):
        allowed.append(row.intent)
    seen = snapshot(row, at, ME, states.__getitem__)
    if seen is Look.PUSH:
        return
    below = [each for each in allowed if each.version <= at]
    if below:
        assert seen is max(below, key=lambda each: each.version)
    else:
        assert seen is (Look.OLDER if row.committed is not None else None)


@given(rows(), st.integers(0, 40), st.sampled_from(CheckMode))
def test_no_check_mode_returns_an_uncommitted_value(
    found: tuple[StoredRow, dict[int, int]], start: int, check: CheckMode
) -> None:
    """Invariant 14, and what each mode promises beyond it."""
    row, states = found
    seen = latest(row, check, start, lambda txn: states[txn])
    committed = row.intent is not None and states[row.intent.txn] == COMMITTED
    if not committed:
        assert seen is row.committed
        return
    assert row.intent is not None
    looks = check is CheckMode.FULL or (check is CheckMode.MINIMAL and row.intent.version <= start)
    assert seen is (row.intent if looks else row.committed)


@given(rows())
def test_no_check_never_looks_a_transaction_up(found: tuple[StoredRow, dict[int, int]]) -> None:
    """The mode `none` needs no record."""

    def unknown(txn: int) -> int:
        raise AssertionError(f"transaction {txn} was looked up")

    assert latest(found[0], CheckMode.NONE, 1 << 62, unknown) is found[0].committed


@given(rows())
def test_a_writer_is_compared_with_the_newest_committed_version(
    found: tuple[StoredRow, dict[int, int]],
) -> None:
    """A committed intent counts as one; its own does not."""
    row, states = found
    seen = newest(row, ME, states.__getitem__)
    is_committed = row.intent is not None and states[row.intent.txn] == COMMITTED
    assert seen is (row.intent if is_committed else row.committed)
