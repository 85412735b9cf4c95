"""The nearest name: `txnctl/cli/near_names.py`."""

from __future__ import annotations

from txnctl.cli.near_names import did_you_mean, nearest

NAMES = ("usage", "busy", "writer-busy")


def test_the_name_most_like_the_given_one() -> None:
    """Case, hyphen and underscore make no difference; a name that is like none has no nearest one."""
    assert nearest("usge", NAMES) == "usage"
    assert nearest("Writer_Buzy", NAMES) == "writer-busy"
    assert nearest("zzzz", NAMES) is None
    assert did_you_mean("usge", NAMES) == "Did you mean usage? "
    assert did_you_mean("zzzz", NAMES) == ""
