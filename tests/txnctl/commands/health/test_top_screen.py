"""The layout of the live screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.reports.live import Rates
from tests.txnctl.commands.health.top_steps import busy_store, drawn
from txnctl.commands.health.top_choice import LiveChoice
from txnctl.commands.health.top_screen import HELP, LiveLook

RATES = Rates(55, 0, {"persistent://public/default/t07": 1203}, {}, {"x": 0.5})


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveLook]:
    """One look at a store with five problems."""
    path: Path = tmp_path_factory.mktemp("look") / "bank.store"
    Store.create(path)
    with Store.open(path) as store:
        live = busy_store(store).reports.live_facts()
        (name,) = [topic.topic for topic in live.overview.facts.topics if topic.name == "t07"]
        yield LiveLook.from_facts(live, RATES._replace(messages_in={name: 1203}))


def test_a_usual_terminal_shows_everything(look: LiveLook) -> None:
    """Verdict, problems, rates, tables with their numbers, keys; the row that needs attention most is the first."""
    lines = drawn(look, LiveChoice(has_problems=True), 80, 24)
    assert "WARNING: 5 findings" in lines[0]
    assert lines[1].startswith("> ! ")
    assert any("in 1,203/s   out 0/s   commits 55/s   aborts 0.5/s" in line for line in lines)
    (tabs,) = [number for number, line in enumerate(lines) if line.startswith("1 problems 5  2 topics 30")]
    assert "by attention" in lines[tabs]
    assert lines[tabs + 2].split()[:2] == ["t04", "6"]
    assert lines[-1].startswith("Enter explain")


def test_problems_are_whole_where_the_rest_leaves_room(tmp_path: Path) -> None:
    """Four problems of two lines and more, each whole beside a small table on a usual terminal, although they take more
    than a third of it; nothing else is left out."""
    Store.create(tmp_path / "long.store")
    with Store.open(tmp_path / "long.store") as store:
        for number in range(4):
            txn = store.begin_transaction(timeout=3600)
            topic = f"{number}-{'payments-of-the-region-' * (2 if number else 3)}"
            store.create_topic(topic)
            store.admin.subscriptions.create_subscription(topic, "billing", initial_position=EARLIEST)
            store.create_producer(topic).send(b"half", txn=txn)
            store.create_producer(topic).send(b"whole")
        look = LiveLook.from_facts(store.reports.live_facts(), None)
    lines = drawn(look, LiveChoice(has_problems=True), 80, 24)
    starts = [number for number, line in enumerate(lines) if line[2:4] == "! "]
    assert len(starts) == 4
    assert not any("more problem" in line or line.endswith("…") for line in lines[starts[0] : starts[-1] + 1])
    assert any(line.startswith("  space ") for line in lines)
    assert any(line.startswith("1 problems 4") for line in lines)


def test_a_tall_terminal_shows_the_parts_of_the_store(look: LiveLook) -> None:
    """Whole problems, space, writer, readers; every topic."""
    lines = drawn(look, LiveChoice(has_problems=True), 100, 60)
    assert [line.split()[0] for line in lines if line.startswith("  space ")] == ["space"]
    assert len([line for line in lines if line.startswith("  t")]) >= 30


@pytest.mark.parametrize("height", [*range(1, 15), 24, 50])
@pytest.mark.parametrize("width", [20, 40, 60, 80, 132])
def test_the_worst_is_kept_on_a_small_terminal(look: LiveLook, width: int, height: int) -> None:
    """With each table chosen; from 40 columns and 10 lines on, a row of the table and the number of problems too."""
    for table in "1234":
        choice = LiveChoice(has_problems=True)
        choice.press(table, look.rows)
        text = "\n".join(drawn(look, choice, width, height))
        assert "bank.store" in text
        assert "! " in text or height < 2
        if width >= 40 and height >= 10:
            assert "more problem" in text or text.count("! ") == 5
            assert "> " in text
            assert "q" in text.splitlines()[-1]


def test_the_chosen_row_stays_on_the_screen(look: LiveLook) -> None:
    """Through the whole table, and through the problems, in a small terminal."""
    for table, count in (("2", 30), ("3", 5), ("4", 30), ("1", 5)):
        choice = LiveChoice(has_problems=True)
        choice.press(table, look.rows)
        for _ in range(count):
            assert sum(line.startswith("> ") for line in drawn(look, choice, 60, 12)) >= 1
            choice.press("down", look.rows)
        choice.press("home", look.rows)
        assert sum(line.startswith("> ") for line in drawn(look, choice, 60, 12)) >= 1


def test_a_filter_is_shown_and_hides(look: LiveLook) -> None:
    """The table says with which text, also where no row has it."""
    choice = LiveChoice(has_problems=True)
    for key in ("2", "/", "t", "0", "7"):
        choice.press(key, look.rows)
    lines = drawn(look, choice, 80, 24)
    assert lines[-1].startswith("/t07_")
    assert [line.split()[1] for line in lines if line.startswith("> ")] == ["t07"]
    choice.press("x", look.rows)
    assert "  none with this text" in drawn(look, choice, 80, 24)


def test_a_text_is_scrolled_within_its_lines(look: LiveLook) -> None:
    """An opened row and the help; the verdict stays above."""
    choice = LiveChoice(has_problems=True)
    choice.press("enter", look.rows)
    text = [f"line {number}" for number in range(100)]
    assert "line 0" in drawn(look, choice, 40, 10, text)
    choice.press("end", look.rows)
    lines = drawn(look, choice, 40, 10, text)
    assert lines[-2] == "line 99"
    assert "bank.store" in lines[0]
    choice.press("page-up", look.rows)
    assert "line 85" in drawn(look, choice, 40, 10, text)
    choice.press("?", look.rows)
    assert drawn(look, choice, 80, 24)[1] == HELP[0]
    choice.press("end", look.rows)
    assert "over keys of tables." in drawn(look, choice, 80, 6)[-2]


def test_stored_text_cannot_drive_the_terminal(tmp_path: Path) -> None:
    """Labels and names of programs are written out, also in their styles."""
    Store.create(tmp_path / "evil.store")
    with Store.open(tmp_path / "evil.store", program="\x1b[2J\x1b[1mp") as store:
        store.begin_transaction(labels={"job": "\x1b[31m\x1b]0;x\x07\u202e"})
        look = LiveLook.from_facts(store.reports.live_facts(), None)
    choice = LiveChoice(has_problems=False)
    choice.press("3", look.rows)
    lines = drawn(look, choice, 132, 24)
    assert any("job=\\x1b[31m\\x1b]0;x\\x07\\u202e" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_nothing_wrong_is_said(tmp_path: Path) -> None:
    """And the topics are chosen at first; empty tables say so."""
    Store.create(tmp_path / "new.store")
    with Store.open(tmp_path / "new.store") as store:
        look = LiveLook.from_facts(store.reports.live_facts(), None)
    lines = drawn(look, LiveChoice(has_problems=False), 80, 24)
    assert "  Nothing is wrong." in lines
    assert "  none" in lines
    assert any("in -/s" in line for line in lines), "there are no rates before the second look"
