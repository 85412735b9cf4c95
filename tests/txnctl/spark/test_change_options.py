"""The options of a read of changes."""

from __future__ import annotations

import pytest

from storage.errors import InvalidValue
from txnctl.output.timestamp import NOW
from txnctl.spark import options

GIVEN = {"path": "/s", "table": "accounts", "readChanges": "true"}


def test_a_start_and_an_end_are_versions_or_times() -> None:
    """A time means the end of its millisecond, as asOf does; the earliest start and the newest end are the default."""
    parsed = options.change_read(
        GIVEN | {"since": "2024-05-01T10:00:00.000Z", "until": "1714564800123456789"}
    )
    assert (parsed.since, parsed.until) == (1714557600000999999, 1714564800123456789)
    assert options.change_read(GIVEN | {"since": "now", "until": "now"}).since == NOW
    for given in (GIVEN, GIVEN | {"since": "earliest"}):
        parsed = options.change_stream(given)
        assert (parsed.since, parsed.until, parsed.fail_on_data_loss) == (None, None, True)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"since": "soon"}, "since 'soon' is neither a version nor a time"),
        ({"since": "20240501"}, "since 20240501 is a time in 1970, in milliseconds"),
        ({"since": "now"}, "killed before its first batch"),
        ({"readChanges": "false"}, "readChanges asks for"),
        ({"until": "now"}, "until is not an option of a stream"),
        ({"topic": "t"}, "topic is not an option of a stream"),
    ],
)
def test_options_that_do_not_fit_a_stream(more: dict[str, str], problem: str) -> None:
    """Each names what to write instead."""
    with pytest.raises(InvalidValue, match=problem):
        options.change_stream(GIVEN | more)


def test_changes_are_of_a_table() -> None:
    """A read of changes without one is refused; the names of other formats are accepted."""
    assert options.reads_changes(GIVEN | {"readChanges": "TRUE"})
    assert options.reads_changes({"readchangefeed": "true"})
    assert not options.reads_changes({"path": "/s", "table": "accounts"})
    with pytest.raises(InvalidValue, match="readChanges reads the changes of a table"):
        options.change_read({"path": "/s", "readChangeData": "true"})
