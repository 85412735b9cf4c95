"""The options that choose transactions: by topic, label, owner and age."""

from __future__ import annotations

from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import DURATION, LABEL, TOPIC
from txnctl.input.names_once import named_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict, TypeVar

    from storage import Store
    from txnctl.cli.declaration import Body

    F = TypeVar("F", bound=Body)

    class Chosen(TypedDict, total=False):
        """Arguments of the lists of `store.reports`."""

        topic: str
        labels: dict[str, str]
        owner: str
        older_than: float


class TransactionChoice(OptionValues):
    """The given options."""

    topic: str | None
    label: Sequence[tuple[str, str]]
    owner: str | None
    older_than: float | None

    def is_given(self) -> bool:
        """Whether any option is given."""
        return bool(self.label) or any(
            value is not None for value in (self.topic, self.owner, self.older_than)
        )

    def given(self) -> Chosen:
        """The given options, as arguments of the lists of `store.reports`."""
        chosen: Chosen = {}
        if self.topic is not None:
            chosen["topic"] = self.topic
        if self.label:
            chosen["labels"] = named_once(self.label, "--label: ")
        if self.owner is not None:
            chosen["owner"] = self.owner
        if self.older_than is not None:
            chosen["older_than"] = self.older_than
        return chosen

    def words(self) -> str:
        """The choice for a note, with a blank before it: ` on orders with label job=loader`; empty for all."""
        words = ""
        if self.topic is not None:
            words += f" on {self.topic}"
        if self.label:
            words += " with label " + ", ".join(f"{name}={value}" for name, value in self.label)
        if self.owner is not None:
            words += f" of an owner with {self.owner!r}"
        if self.older_than is not None:
            from txnctl.output.human import duration

            words += f" older than {duration(int(self.older_than * 1000))}"
        return words

    def near_label(self, store: Store) -> str:
        """The end of a note that no transaction is like that: the open transaction's label nearest to the given one."""
        from txnctl.cli.near_names import nearest

        rows = store.reports.list_transactions() if self.label else []
        known = {f"{name}={value}" for row in rows for name, value in row.labels.items()}
        for label in [f"{name}={value}" for name, value in self.label]:
            near = None if label in known else nearest(label, known)
            if near is not None:
                return f"; did you mean --label {near}?"
        return ""


def chooses_transactions(function: F) -> F:
    """Take --topic, --label, --owner and --older-than, and hand them over as `choice`."""
    for declare in reversed(
        (
            option("--topic", type=TOPIC, help="Only those that produced to this topic."),
            option(
                "--label",
                type=LABEL,
                metavar="K=V",
                multiple=True,
                help="Only those with this label; given several times, with all of them.",
            ),
            option(
                "--owner",
                metavar="TEXT",
                help="Only those with this text in their owner, user@host:pid (program).",
            ),
            option("--older-than", type=DURATION, help="Only those begun longer ago."),
            option_values("choice", TransactionChoice),
        )
    ):
        function = declare(function)
    return function
