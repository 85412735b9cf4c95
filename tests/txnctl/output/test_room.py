"""Room on a live screen."""

from __future__ import annotations

import pytest

from txnctl.output.room import ScreenPart, cut, kept, share, window


def test_where_all_fits_each_part_has_what_it_wants() -> None:
    """And no line more."""
    assert share([ScreenPart(1, 1, 3), ScreenPart(0, 2, 2)], 20) == [3, 2]


@pytest.mark.parametrize("height", range(12))
def test_the_first_rank_is_kept_longest(height: int) -> None:
    """The sum never exceeds the height; a part of a lower rank has its least before a further part has any."""
    header, problems, rows = share([ScreenPart(0, 1, 1), ScreenPart(1, 1, 8), ScreenPart(2, 2, 30)], height)
    assert header + problems + rows <= height
    assert header == min(1, height)
    assert problems >= min(1, height - header)
    assert rows == 0 or rows >= 2


def test_a_report_that_does_not_fit_begins_with_the_problems() -> None:
    """Then comes as much of the report as there is room for, and how much is missing."""
    report = [str(number) for number in range(30)]
    assert kept(["worst", "bad"], report, 6) == ["worst", "bad", "", "0", "1", "and 28 more lines"]
    assert kept(["worst", "bad"], report, 2) == ["worst", "bad"]
    assert kept(["worst", "bad"], report, 1) == ["worst"]
    assert kept(["worst", "bad", "so so"], report, 2) == ["worst", "and 2 more problems"]
    assert kept(["worst"] * 9, report, 9) == [
        *["worst"] * 5,
        "and 4 more problems",
        "",
        "0",
        "and 29 more lines",
    ]
    assert kept([], report, 3) == ["0", "1", "and 28 more lines"]


@pytest.mark.parametrize("height", range(1, 40))
def test_a_report_is_never_higher_than_the_screen(height: int) -> None:
    """Whatever it holds."""
    for problems in range(6):
        shown = kept(["p"] * problems, ["r"] * 31, height)
        assert len(shown) <= height
        assert not problems or shown[0] == "p"


def test_a_cut_says_how_much_is_missing() -> None:
    """In the singular as well."""
    assert cut(["a", "b"], 2, "line") == ["a", "b"]
    assert cut(["a", "b", "c"], 2, "problem") == ["a", "and 2 more problems"]
    assert cut(["a", "b"], 1, "line") == ["a"]
    assert cut(["a"], 0, "line") == []


def test_a_window_has_the_chosen_row_and_no_room_to_spare() -> None:
    """At both ends too."""
    for chosen in range(20):
        first = window(20, chosen, 7)
        assert first <= chosen < first + 7
        assert 0 <= first <= 13
    assert window(3, 2, 7) == 0
