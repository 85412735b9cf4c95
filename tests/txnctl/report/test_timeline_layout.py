"""Where the drawing of the report puts things: within the picture, legibly, in the order of the log."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage.reports.stats import Readable, SubscriptionStats
from storage.reports.timeline import Blocking, Timeline
from storage.values.position import Position
from tests.model_runs import examples
from tests.txnctl.typed_rows import QUIET, START, STATS, blocking, ledgers_of
from txnctl.report.shapes import CELL, Label, PageDrawing, cells, fitted, lanes
from txnctl.report.timeline_layout import (
    NARROW,
    SUBSCRIPTIONS_DRAWN,
    TRANSACTIONS_DRAWN,
    WIDE,
    draw,
)

WIDTHS = (WIDE, NARROW)
LEVELS = ("READ_COMMITTED", "READ_UNCOMMITTED")


def position(sizes: list[int], entries: int) -> str:
    """The position of the last of so many entries; before the first one it is `1:-1`."""
    left = entries
    for number, size in enumerate(sizes):
        if left <= size:
            return f"{number + 1}:{left - 1}"
        left -= size
    raise AssertionError("there are not so many")


def transaction(name: str, first: str, last: str, through: str, frees: int = 5, **facts: Any) -> Blocking:
    """A link of the chain; the facts are of its holder."""
    link = blocking(name, first, last, through)
    return link._replace(frees=frees, holder=link.holder._replace(**facts))


def subscription(mark: str, read: str, level: str = LEVELS[0], **facts: Any) -> SubscriptionStats:
    """A cursor, as far as it is drawn."""
    cursor = STATS._replace(
        type="Key_Shared", subscription_isolation_level=level, mark_delete_position=Position.parse(mark),
        read_position=Position.parse(read), unacked_messages=3, visible=7, blocked=9, verdict="mixed",
    )  # fmt: skip
    return cursor._replace(**facts)


def model_of(
    sizes: list[int], max_read: str, chain: list[Blocking], subscriptions: dict[str, SubscriptionStats]
) -> Timeline:
    """A topic."""
    total = sum(sizes)
    return QUIET._replace(
        msg_count=total, readable=Readable(total, 0, 5 * len(chain), None),
        max_read_position=Position.parse(max_read), last_confirmed_entry=Position.parse(position(sizes, total)),
        first_position=START if total else None, ledgers=ledgers_of(sizes), open_transactions=chain,
        subscriptions=subscriptions,
    )  # fmt: skip


@st.composite
def models(draw_: Any) -> Timeline:
    """Topics of any size, with open transactions and cursors anywhere, under any names."""
    sizes = draw_(st.lists(st.integers(0, 4_000_000), min_size=1, max_size=12))
    total = sum(sizes)
    count = draw_(st.integers(0, min(TRANSACTIONS_DRAWN + 3, total)))
    starts = sorted(
        draw_(st.lists(st.integers(1, total), min_size=count, max_size=count, unique=True)) if count else []
    )
    chain = []
    for number, start in enumerate(starts):
        through = starts[number + 1] - 1 if number + 1 < count else total
        last = draw_(st.integers(start, total))
        facts = {
            "labels": draw_(st.dictionaries(st.text(max_size=30), st.text(max_size=30), max_size=2)),
            "orphaned": draw_(st.booleans()), "age_ms": draw_(st.integers(0, 10**10)),
            "frees": draw_(st.integers(0, 10**9)),
        }  # fmt: skip
        name = f"0:{draw_(st.integers(1, 10**17))}"
        chain.append(
            transaction(
                name, position(sizes, start), position(sizes, last), position(sizes, through), **facts
            )
        )
    cursors = {}
    for name in draw_(st.lists(st.text(min_size=1, max_size=60), max_size=5, unique=True)):
        mark, read = sorted(draw_(st.lists(st.integers(0, total), min_size=2, max_size=2)))
        level = draw_(st.sampled_from(LEVELS))
        cursors[name] = subscription(position(sizes, mark), position(sizes, read), level)
    max_read = position(sizes, starts[0] - 1 if starts else total)
    return model_of(sizes, max_read, chain, cursors)


def overlap(one: Any, other: Any) -> bool:
    """Whether two boxes have a place in common."""
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


def check(drawing: PageDrawing) -> None:
    """Everything lies within the picture, and no two labels share a place."""
    for each in (*drawing.labels(), *drawing.shapes()):
        left, top, right, bottom = each.box
        assert left >= 0, vars_of(each)
        assert top >= 0, vars_of(each)
        assert right <= drawing.width + 0.01, vars_of(each)
        assert bottom <= drawing.height, vars_of(each)
    for one, other in combinations(drawing.labels(), 2):
        assert not overlap(one.box, other.box), (one.text, other.text)


def vars_of(each: Any) -> dict[str, Any]:
    """What a failure is to show."""
    return {name: getattr(each, name) for name in each.__slots__} | {"box": each.box}


def lefts(drawing: PageDrawing, kind: str) -> list[float]:
    """Where the figures of a kind begin, from top to bottom."""
    return [each.x for each in drawing.shapes() if each.kind == kind]


def texts(drawing: PageDrawing) -> list[str]:
    """What is written on it."""
    return [each.text for each in drawing.labels()]


class TestAnyTopic:
    """Whatever a topic is like."""

    @settings(max_examples=examples(150), deadline=None)
    @given(models(), st.sampled_from(WIDTHS))
    def test_all_is_inside_and_legible(self, model: Timeline, width: int) -> None:
        """Labels and figures lie within the picture; labels never lie over each other."""
        check(draw(model, width))

    @settings(max_examples=examples(80), deadline=None)
    @given(models(), st.sampled_from(WIDTHS))
    def test_the_order_of_the_log_is_kept(self, model: Timeline, width: int) -> None:
        """Who begins later in the log begins no further left, and nothing blocked lies left of maxReadPosition."""
        drawing = draw(model, width)
        begins = lefts(drawing, "extent")
        assert all(one <= other + 3 for one, other in pairwise(begins))
        bound = max(lefts(drawing, "bound"))
        assert all(x >= bound - 3 for x in begins)
        assert all(x >= bound for x in lefts(drawing, "blocked"))

    @settings(max_examples=examples(60), deadline=None)
    @given(models())
    def test_every_transaction_and_cursor_is_drawn_or_counted(self, model: Timeline) -> None:
        """Nothing is left out in silence."""
        drawing = draw(model, WIDE)
        chain = model.open_transactions
        assert len(lefts(drawing, "extent")) == min(len(chain), TRANSACTIONS_DRAWN)
        assert len(lefts(drawing, "cursor")) == len(model.subscriptions)
        left = len(chain) - TRANSACTIONS_DRAWN
        more = f"{left} more open transaction{'s' if left > 1 else ''}"
        assert (more in texts(drawing)) is (left > 0)


class TestOneMessage:
    """The smallest topics."""

    @pytest.mark.parametrize("width", WIDTHS)
    def test_an_empty_topic_says_so(self, width: int) -> None:
        """There is nothing to draw but the tracks."""
        drawing = draw(model_of([0], "1:-1", [], {"billing": subscription("1:-1", "1:-1")}), width)
        check(drawing)
        assert "no messages yet" in texts(drawing)

    def test_one_message_fills_the_track(self) -> None:
        """Whether it is readable, or uncommitted."""
        (readable,) = [
            each for each in draw(model_of([1], "1:0", [], {}), WIDE).shapes() if each.kind == "readable"
        ]
        drawing = draw(model_of([1], "1:-1", [transaction("0:1", "1:0", "1:0", "1:0")], {}), WIDE)
        (own,) = [each for each in drawing.shapes() if each.kind == "own"]
        assert own.width == WIDE - own.x - (WIDE - readable.x - readable.width)


class TestHugeTopic:
    """Ten million messages."""

    def test_what_is_stuck_at_its_end_is_drawn_large(self) -> None:
        """The part before it takes a quarter of the track, and the change of scale is marked."""
        chain = [transaction("0:7", "1:9999900", "1:9999950", "1:9999999")]
        drawing = draw(model_of([10_000_000], "1:9999899", chain, {}), WIDE)
        check(drawing)
        (readable,) = [each for each in drawing.shapes() if each.kind == "readable"]
        (blocked,) = [each for each in drawing.shapes() if each.kind == "blocked"]
        assert 2.9 < blocked.width / readable.width < 3.1
        assert len(lefts(drawing, "break")) == 1

    def test_a_single_message_in_it_is_seen(self) -> None:
        """It is wider than its share."""
        chain = [transaction("0:7", "1:5", "1:5", "1:9999999")]
        (own,) = [
            each
            for each in draw(model_of([10_000_000], "1:4", chain, {}), WIDE).shapes()
            if each.kind == "own"
        ]
        assert own.width >= 3

    def test_thousands_of_ledgers_are_drawn_together(self) -> None:
        """As many figures as have room, from end to end without a gap."""
        drawing = draw(model_of([100] * 3000, "3000:99", [], {}), WIDE)
        check(drawing)
        segments = [each for each in drawing.shapes() if each.kind.startswith("ledger")]
        assert 100 < len(segments) < 300
        assert all(one.x + one.width == other.x for one, other in pairwise(segments))


class TestWords:
    """What stands beside the figures."""

    def test_who_and_how(self) -> None:
        """Id, state, age, label, and what it frees; what asks for attention is of another kind."""
        gone = transaction("0:7", "1:5", "1:6", "1:9", orphaned=True, labels={"job": "loader"})
        found = {each.text: each.kind for each in draw(model_of([10], "1:4", [gone], {}), WIDE).labels()}
        assert found["0:7"] == "name"
        assert found["ORPHANED"] == "alarm"
        assert found["1m30s job=loader"] == found["frees 5"] == "soft"

    @pytest.mark.parametrize(("level", "form"), [(LEVELS[0], "down"), (LEVELS[1], "diamond")])
    def test_the_isolation_level_gives_the_cursor_its_form(self, level: str, form: str) -> None:
        """And is written out."""
        drawing = draw(model_of([10], "1:9", [], {"billing": subscription("1:4", "1:6", level)}), WIDE)
        assert [each.form for each in drawing.shapes() if each.kind == "cursor"] == [form]
        assert f"Key_Shared {level}" in texts(drawing)

    def test_who_skips_is_drawn_to_the_end(self) -> None:
        """What it may be handed does not end at maxReadPosition."""
        chain = [transaction("0:7", "1:5", "1:5", "1:9")]
        for on_open, end in (("block", 0.5), ("skip", 1.0)):
            cursor = subscription("1:-1", "1:-1", on_open=on_open, unacked_messages=0, blocked=0)
            drawing = draw(model_of([10], "1:4", chain, {"billing": cursor}), WIDE)
            (visible,) = [each for each in drawing.shapes() if each.kind == "visible"]
            tracks = [
                each
                for each in drawing.shapes()
                if each.kind in ("readable", "blocked") and each.height == 20
            ]
            whole = sum(each.width for each in tracks if each.form != "line")
            assert visible.width == pytest.approx(whole * end, abs=1)
            assert ("skip" in texts(drawing)) is (on_open == "skip")

    def test_of_many_subscriptions_the_stuck_ones_are_drawn(self) -> None:
        """The others are counted."""
        many = {
            f"s{number}": subscription("1:0", "1:0", blocked=number, verdict="blocked")
            for number in range(SUBSCRIPTIONS_DRAWN + 4)
        }
        drawing = draw(model_of([10], "1:4", [], many), WIDE)
        assert "4 more subscriptions" in texts(drawing)
        assert f"s{SUBSCRIPTIONS_DRAWN + 3}" in texts(drawing)
        assert "s0" not in texts(drawing)

    @pytest.mark.parametrize("width", WIDTHS)
    def test_no_name_is_cut_where_there_is_room(self, width: int) -> None:
        """Labels of a transaction and the name of a subscription stand in as many lines as they need."""
        job = {"job": "nightly-import-of-everything", "region": "eu-central-1"}
        chain = [transaction("0:1187", "1:5", "1:6", "1:9", labels=job, frees=1_000_000)]
        name = "archive-of-everything-in-the-region-eu-central-1"
        model = model_of([10], "1:4", chain, {name: subscription("1:2", "1:4")})
        drawing = draw(model, width)
        check(drawing)
        written = "".join(texts(drawing)).replace(" ", "")
        assert "job=nightly-import-of-everythingregion=eu-central-1" in written
        assert name in written
        assert "…" not in written

    def test_the_axis_counts_messages(self) -> None:
        """Both ends and maxReadPosition, which has its number of messages beside the position."""
        chain = [transaction("0:7", "1:5", "1:6", "1:9")]
        assert {"0", "10 messages", "maxReadPosition 1:4 after 5"} <= set(
            texts(draw(model_of([10], "1:4", chain, {}), WIDE))
        )

    def test_the_picture_in_words(self) -> None:
        """For those who do not see it."""
        chain = [transaction("0:7", "1:5", "1:6", "1:9")]
        words = draw(model_of([10], "1:4", chain, {"billing": subscription("1:2", "1:4")}), WIDE).description
        assert "READ_COMMITTED reads up to 1:4 of 1:9" in words
        assert "1 open transaction, the first of them 0:7 from 1:5 on; 5 committed messages blocked" in words
        assert "subscription billing: READ_COMMITTED, acknowledged through 1:2, mixed" in words


class TestText:
    """Labels, their width, their places."""

    @given(st.text(max_size=80), st.integers(0, 40))
    def test_a_fitted_text_fits(self, text: str, room: int) -> None:
        """What it has too much of is cut."""
        assert cells(fitted(text, room)) <= room

    def test_what_fits_is_left_alone(self) -> None:
        """What does not ends in an ellipsis; wide letters take two cells."""
        assert fitted("billing", 7) == "billing"
        assert fitted("billing", 6) == "billi…"
        assert fitted("東京東京", 6) == "東京…"

    def test_no_label_holds_control_characters(self) -> None:
        """They are written out."""
        assert Label("a\x1b[2J\u202eb", "name", 0, 0).text == "a\\x1b[2J\\u202eb"

    @given(st.lists(st.tuples(st.floats(0, 500), st.floats(1, 300)), min_size=1, max_size=12))
    def test_labels_in_lanes_touch_nobody(self, wanted: list[tuple[float, float]]) -> None:
        """Within their bounds, a letter apart; the first in lane 0."""
        found = lanes(wanted, 0, 500)
        assert found[0][1] == 0
        placed = [
            (start, start + width, lane) for (start, lane), (_, width) in zip(found, wanted, strict=True)
        ]
        assert all(a >= 0 and b <= 500.001 for a, b, _ in placed)
        for one, other in combinations(placed, 2):
            if one[2] == other[2]:
                assert one[1] + CELL <= other[0] + 0.001 or other[1] + CELL <= one[0] + 0.001
