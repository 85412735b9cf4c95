"""Facts and a context for the tests of the live screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from storage import EARLIEST, Store
from txnctl.cli.context import Context
from txnctl.commands.health.top_choice import LiveChoice
from txnctl.commands.health.top_screen import LiveLook, screen
from txnctl.output.styled import segments
from txnctl.output.table import list_table


class PlainContext:
    """A context at a terminal of a width, without a store; styles are left out, or not."""

    def __init__(self, width: int, *, color: bool = False) -> None:
        self.width = width
        self._color = color

    def style(self, text: str, *styles: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._color and styles else text

    def table_of(self, rows: Sequence[Any], columns: Iterable[Any], *, indent: int = 0) -> Any:
        return list_table(rows, columns, self.width - indent)


def busy_store(store: Store) -> Store:
    """Thirty topics with subscriptions; transactions hold back five of the topics, one each."""
    for number in range(30):
        store.create_topic(f"t{number:02}")
        store.admin.subscriptions.create_subscription(f"t{number:02}", "billing", initial_position=EARLIEST)
    for number in range(5):
        txn = store.begin_transaction(timeout=3600, labels={"job": f"loader-{number}"})
        store.create_producer(f"t{number:02}").send(b"half", txn=txn)
        store.create_producer(f"t{number:02}").send_batch([b"whole"] * (number + 1))
    return store


def plain(lines: Sequence[str]) -> list[str]:
    """Without styles."""
    return ["".join([text for text, _ in segments(line)]) for line in lines]


def drawn(look: LiveLook, choice: LiveChoice, width: int, height: int, text: Sequence[str] = ()) -> list[str]:
    """The screen as text, with the checks that hold for every screen."""
    lines = plain(screen(cast(Context, PlainContext(width, color=True)), look, choice, text, height))
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines == plain(screen(cast(Context, PlainContext(width)), look, choice, text, height))
    return lines
