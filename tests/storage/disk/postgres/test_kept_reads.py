"""Reads are kept for the commit that they were made of, and for no other."""

from __future__ import annotations

from storage.disk.postgres.kept_reads import KeptReads, ReadsOfProcess
from storage.disk.postgres.layout import RecordPlace
from storage.disk.schema import TOPICS, TXNS

TOPIC_PLACE, TXN_PLACE = RecordPlace(TOPICS), RecordPlace(TXNS)
WHICH = (b"next\x03", b"\x04", 8)


def test_a_view_and_the_next_batch_of_a_commit_share_reads() -> None:
    """A read of one serves the other."""
    reads = ReadsOfProcess()
    view = reads.of_view(7)
    view.values[b"k"] = b"v"
    reads.give_back(view)
    assert reads.claim(7).values == {b"k": b"v"}


def test_reads_of_another_commit_are_not_used() -> None:
    """Neither by a view nor by a batch."""
    reads = ReadsOfProcess()
    reads.of_view(7).values[b"k"] = b"v"
    assert reads.of_view(8).values == {}
    assert reads.claim(9).values == {}


def test_a_late_view_displaces_no_newer_reads() -> None:
    """A view of commit 7 that opens behind a commit of this process gets reads of its own."""
    reads = ReadsOfProcess()
    reads.of_view(8).values[b"k"] = b"new"
    assert reads.of_view(7).values == {}
    assert reads.of_view(8).values == {b"k": b"new"}


def test_a_batch_that_is_refused_takes_its_reads_along() -> None:
    """A batch made without the gate may have read what a later commit wrote."""
    reads = ReadsOfProcess()
    reads.of_view(7)
    reads.claim(7).values[b"k"] = b"of a later commit"
    assert reads.of_view(7).values == {}


def test_an_open_view_does_not_see_the_changes_of_a_commit() -> None:
    """The commit goes on with a copy."""
    reads = ReadsOfProcess()
    view = reads.of_view(7)
    view.values[b"\x03k"] = b"before"
    claimed = reads.claim(7)
    reads.advance(claimed, 8, {TOPIC_PLACE: {b"k": b"after"}})
    assert view.values == {b"\x03k": b"before"}
    assert reads.of_view(8).values[b"\x03k"] == b"after"


def test_a_change_forgets_the_stretches_of_its_database_alone() -> None:
    """Values are replaced, stretches dropped."""
    reads = KeptReads(7)
    for place in (TOPIC_PLACE, TXN_PLACE):
        reads.keep_stretch(place, WHICH, ([b"k"], [b"v"]))
    reads = reads.advanced(8, {TOPIC_PLACE: {b"k": None}})
    assert reads.number == 8
    assert reads.stretch(TOPIC_PLACE, WHICH) is None
    assert reads.stretch(TXN_PLACE, WHICH) == ([b"k"], [b"v"])
    assert reads.values == {TOPIC_PLACE.prefix + b"k": None}


def test_large_stretches_and_many_records_are_not_kept() -> None:
    """The memory is bounded."""
    reads = KeptReads(7)
    reads.keep_stretch(TOPIC_PLACE, WHICH, ([b"k"], [b"v" * (1 << 15)]))
    assert reads.stretch(TOPIC_PLACE, WHICH) is None
    reads.values.update((b"%d" % number, b"") for number in range(5000))
    assert reads.advanced(8, {}).values == {}
