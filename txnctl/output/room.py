"""The room on a live screen: which lines stay where the terminal is too small for all. Pure.

A screen of parts (`txnctl top`) shares its lines by `share`; a report that is drawn again and again (`--watch`) is cut
by `kept`. Both keep the problems, the worst first, and say how many lines are left out.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ScreenPart(NamedTuple):
    """A part of a screen, in lines.

    Attributes:
        rank: parts of a lower rank get their lines first.
        least: lines without which the part says nothing.
        wanted: lines for all of the part.
    """

    rank: int
    least: int
    wanted: int


def share(parts: Sequence[ScreenPart], height: int) -> list[int]:
    """The lines of each part, in the order of the parts: together at most the height.

    By rank each part gets its least, then by rank as much as it wants.
    """
    lines, left = [0] * len(parts), max(0, height)
    by_rank = sorted(range(len(parts)), key=lambda at: parts[at].rank)
    for at in by_rank:
        least = min(parts[at].least, parts[at].wanted)
        if least <= left:
            lines[at] = least
            left -= least
    for at in by_rank:
        if lines[at] or not parts[at].least:
            more = min(parts[at].wanted - lines[at], left)
            lines[at] += more
            left -= more
    return lines


def kept(problems: Sequence[str], report: Sequence[str], height: int) -> list[str]:
    """A report that does not fit in a height: the problems, in up to two thirds, then the begin of the report.

    Args:
        problems: the worst first, a line each.
        report: with the problems among its lines, or what is left of the report without them.
    """
    if not problems:
        return cut(report, height, "line")
    most = max(1, height * 2 // 3)
    for_problems, for_report = share(
        [ScreenPart(0, most, len(problems)), ScreenPart(1, 3, len(report) + 1)], height
    )
    above = cut(problems, for_problems, "problem")
    return [*above, "", *cut(report, for_report - 1, "line")] if for_report else above


def cut(lines: Sequence[str], height: int, noun: str) -> list[str]:
    """The first lines; where some are left out, the last line kept says how many."""
    if len(lines) <= height:
        return list(lines)
    if height < 1:
        return []
    left_out = len(lines) - height + 1
    note = f"and {left_out:,} more {noun}{'' if left_out == 1 else 's'}"
    # A single line has room for the worst one alone.
    return [*lines[: height - 1], note] if height > 1 else [lines[0]]


def window(count: int, chosen: int, height: int) -> int:
    """The first of `count` rows that a list of this height shows, so that the chosen one is in the middle or near."""
    return max(0, min(chosen - height // 2, count - height))
