"""Lines with styles."""

from __future__ import annotations

import pytest

from txnctl.output.styled import clipped, segments

LINE = "! \x1b[1;31mbad\x1b[0m and \x1b[2mdim\x1b[0m"


def test_a_line_is_parted_by_style() -> None:
    """The texts together are the line without styles."""
    assert list(segments(LINE)) == [
        ("! ", frozenset()),
        ("bad", frozenset({"1", "31"})),
        (" and ", frozenset()),
        ("dim", frozenset({"2"})),
    ]
    assert list(segments("")) == []


@pytest.mark.parametrize("width", range(1, 20))
def test_a_cut_line_is_as_wide_as_the_terminal(width: int) -> None:
    """Styles take no room and end where they ended; the ellipsis says that something is missing."""
    plain = "".join([text for text, _ in segments(clipped(LINE, width))])
    assert plain == ("! bad and dim" if width >= 13 else "! bad and dim"[: width - 1] + "…")
    assert list(segments(clipped(LINE, width) + "x"))[-1][1] == frozenset()


def test_a_line_that_fits_stays_as_it_is() -> None:
    """Byte for byte."""
    assert clipped(LINE, 13) == LINE
    assert clipped("abc", 0) == ""
