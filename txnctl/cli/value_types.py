"""The kinds of value of options and arguments, each with one grammar everywhere.

A text outside the grammar is bad input (exit 2): the message names the option, the hint the expected form. Where a
value is a value of the engine (a position, a transaction id, a named constant), the engine's own parser decides.
"""

# The signatures are click's.
# ruff: noqa: ARG002

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import click

from storage.errors import BadInput, InvalidPosition, InvalidValue
from txnctl.output.shell import line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from click.shell_completion import CompletionItem

    from storage.values.position import Extreme, MessageId, Position
    from storage.values.txn_id import TxnID
    from txnctl.cli.at_time import AtTime
    from txnctl.cli.of_now import OfNow

    PositionOrTime: TypeAlias = Position | MessageId | Extreme | AtTime
    Completer = Callable[[click.Context, str], list[CompletionItem]]

_DURATION_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_MS_MAX = 36_500 * 86_400_000
_SIZE_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _SIZE_UNITS |= {f"{_letter}{_rest}": 1 << 10 * _power for _rest in ("", "B", "IB")}
_SIZE_MAX = 1 << 60


def place_of(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """Where a value comes from, for the beginning of an error: `--txn: `, or `TXNCTL_TXN: ` for a variable."""
    if param is None:
        return ""
    if ctx is not None and param.name and isinstance(param.envvar, str):
        source = ctx.get_parameter_source(param.name)
        if source is click.core.ParameterSource.ENVIRONMENT:
            return f"{param.envvar}: "
    return param.get_error_hint(ctx).replace("'", "") + ": "


class Grammar(click.ParamType, ABC):  # type: ignore[type-arg]
    """A kind of value: how to parse, the expected form in words, and a value that hints show."""

    expected = ""
    sample = ""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value of `text`; None, or an error of the engine, for a text of a different kind."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that was typed; a default that is a value already stays unchanged."""
        if not isinstance(value, str):
            return value
        place = place_of(param, ctx)
        try:
            parsed = self.read(value)
        except BadInput as error:
            error.message = f"{place}{error.message}"
            error.args = (error.message,)
            error.hint = error.hint or self.hint()
            raise
        if parsed is None:
            raise InvalidValue(
                f"{place}{value[:80]!r} {self.objection(value)}", hint=self.hint(), value=value[:80]
            )
        return parsed

    def objection(self, text: str) -> str:
        """The end of the error for a text that is none."""
        return f"is not {_with_article(self.name)}"

    def hint(self) -> str:
        """The expected form, as a sentence."""
        return f"Expected: {self.expected}."


class Duration(Grammar):
    """`500ms`, `30s`, `15m`, `2h`, `1d`, as milliseconds or as seconds."""

    name = "duration"
    sample = "10m"
    expected = "a whole number with a unit, such as 500ms, 30s, 15m, 2h or 1d"

    def __init__(self, *, milliseconds: bool = False) -> None:
        self._milliseconds = milliseconds

    def read(self, text: str) -> float | int | None:
        """The length of time, or None."""
        milliseconds = _scaled(text, "dhms", _DURATION_UNITS_MS)
        if milliseconds is None or milliseconds > _DURATION_MS_MAX:
            return None
        return milliseconds if self._milliseconds else milliseconds / 1000

    def objection(self, text: str) -> str:
        """A duration that is too long is told the longest."""
        if _scaled(text, "dhms", _DURATION_UNITS_MS) is None:
            return super().objection(text)
        return f"is longer than {_DURATION_MS_MAX // 86_400_000}d, the longest duration"


class Size(Grammar):
    """Bytes: `4096`, `64K`, `5M`, `1G`; `KiB` and `KB` say the same as `K`, 1,024."""

    name = "size"
    sample = "64M"
    expected = "a whole number of bytes, or with a unit of 1,024: 4096, 64K, 5M, 1G"

    def read(self, text: str) -> int | None:
        """The number of bytes, or None."""
        size = _scaled(text, "BKMGTibkmgt", _SIZE_UNITS)
        return size if size is not None and size <= _SIZE_MAX else None

    def objection(self, text: str) -> str:
        """A size that is too large is told the largest."""
        if _scaled(text, "BKMGTibkmgt", _SIZE_UNITS) is None:
            return super().objection(text)
        return f"is larger than {_SIZE_MAX >> 40}T, the largest size"


class PositionGrammar(Grammar):
    """`earliest`, `latest`, `L:E`, `L:E:B`; with `times` also `@TIME`, and a time that is no number without `@`."""

    name = "position"
    sample = "earliest"

    def __init__(self, *, times: bool = False) -> None:
        self._times = times
        self.expected = "earliest, latest, ledger:entry or ledger:entry:batchIndex, such as 12:4471"
        if times:
            self.expected += ", or @TIME, such as @2h or @2024-05-01T10:00:00Z"

    def read(self, text: str) -> PositionOrTime | OfNow:
        """Parse by the rules of the engine, or as `@TIME`."""
        if self._times and text.startswith("@"):
            from txnctl.cli.at_time import AtTime

            return AtTime.parse(text)
        from storage.values.position import parse_start

        try:
            return parse_start(text)
        except InvalidPosition as error:
            if self._times and not text.isdecimal():
                from txnctl.cli.at_time import AtTime
                from txnctl.cli.of_now import mapped
                from txnctl.cli.time_values import TIME

                time_ms = TIME.read(text)
                if time_ms is not None:
                    return mapped(time_ms, AtTime)
            error.hint = self.hint()
            raise

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The two words."""
        return _words(("earliest", "latest"), incomplete)


class MessageRange:
    """Which messages: from `first` to `last`, both included, or the `newest` so many."""

    __slots__ = ("first", "last", "newest")

    def __init__(
        self,
        first: PositionOrTime,
        last: PositionOrTime,
        newest: int | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.newest = newest


class RangeGrammar(Grammar):
    """`A..B` (either may be missing), one position, `-N` (the last N), `@TIME` (from then on)."""

    name = "range"
    sample = "earliest..latest"
    expected = (
        "A..B with positions or @TIME, either side may be missing; a position; -N for the last N; or @TIME"
    )

    def read(self, text: str) -> MessageRange | OfNow | None:
        """The range, or None."""
        from storage.values.position import EARLIEST, LATEST
        from txnctl.cli.at_time import AtTime
        from txnctl.cli.of_now import OfNow, known

        if text.startswith("-"):
            newest = text[1:]
            return (
                MessageRange(EARLIEST, LATEST, int(newest)) if _is_natural(newest) and int(newest) else None
            )
        first_text, dots, last_text = text.partition("..")
        first: PositionOrTime | OfNow = _POSITION_OR_TIME.read(first_text) if first_text else EARLIEST
        if dots:
            last: PositionOrTime | OfNow = _POSITION_OR_TIME.read(last_text) if last_text else LATEST
        elif first_text:
            last = LATEST if isinstance(first, AtTime | OfNow) or first is EARLIEST else first
        else:
            return None
        if isinstance(first, OfNow) or isinstance(last, OfNow):
            return OfNow(lambda now_ms: MessageRange(known(first, now_ms), known(last, now_ms)))
        return MessageRange(first, last)


class TransactionGrammar(Grammar):
    """A transaction id: `0:42`, `(0,42)` or `42`."""

    name = "transaction id"
    sample = "0:42"
    expected = "a transaction id: 0:42, (0,42) or 42"

    def read(self, text: str) -> TxnID:
        """Parse by the rules of the engine."""
        from storage.values.txn_id import TxnID

        return TxnID.parse(text)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Open transactions, with age and owner."""
        from txnctl.cli.complete import open_transactions

        return open_transactions(ctx, incomplete)


class NamedConstant(Grammar):
    """One of a few names; `READ_COMMITTED`, `read-committed` and `ReadCommitted` are alike.

    The value is the member of that name of the engine's enumeration at `place` ("module:class"), or, without one,
    the name as listed.
    """

    def __init__(self, name: str, names: Sequence[str], place: str | None = None) -> None:
        self.name = name
        self.names = tuple(names)
        self._place = place
        self.expected = f"one of {', '.join(self.names)}"
        self.sample = self.names[0]

    def read(self, text: str) -> Any:
        """The constant, or None."""
        typed = _plain(text)
        for name in self.names:
            if _plain(name) == typed:
                return name if self._place is None else _member(self._place, name)
        return None

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names themselves."""
        return "|".join(self.names)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names, in the case that was begun."""
        typed = _plain(incomplete)
        return _words([name for name in self.names if _plain(name).startswith(typed)], "")


class TopicName(Grammar):
    """The name of a topic; the engine holds it to the rules."""

    name = "topic"
    sample = "orders"

    def read(self, text: str) -> str:
        """The name as it is."""
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The topics of the store."""
        from txnctl.cli.complete import topics

        return topics(ctx, incomplete)


class SubscriptionName(Grammar):
    """The name of a subscription of the topic earlier on the line."""

    name = "subscription"
    sample = "billing"

    def read(self, text: str) -> str:
        """The name as it is."""
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The subscriptions of the topic."""
        from txnctl.cli.complete import subscriptions

        return subscriptions(ctx, incomplete)


class TableName(Grammar):
    """The name of a table; the engine holds it to the rules."""

    name = "table"
    sample = "accounts"

    def read(self, text: str) -> str:
        """The name as it is."""
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The tables of the store."""
        from txnctl.cli.complete import tables

        return tables(ctx, incomplete)


class SessionToken(Grammar):
    """The token of a producer's session, printed by `producers open`."""

    name = "session"

    def read(self, text: str) -> str:
        """Parse by the rules of the engine."""
        from storage.topic.producers.session import Token

        try:
            return Token(text).text
        except InvalidValue as error:
            opens = line("producers open", "TOPIC")
            error.hint = f"Under `producers lead` it is in TXNCTL_SESSION; this prints one: {opens}"
            raise

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The sessions that belong to no process, with name, age and owner."""
        from txnctl.cli.complete import sessions

        return sessions(ctx, incomplete)


class ErrorCode(Grammar):
    """The code of an error."""

    name = "code"
    sample = "busy"

    def read(self, text: str) -> str:
        """The code, unchanged."""
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """All codes, with the next step after each."""
        from click.shell_completion import CompletionItem

        from txnctl.cli.remedies import REMEDIES

        return [
            CompletionItem(code, help=step) for code, step in REMEDIES.items() if code.startswith(incomplete)
        ]


class Reason(Grammar):
    """The reason of a change, for the audit trail: no placeholder of a plan."""

    name = "text"
    sample = "hangs since the deploy"
    expected = "a few words that a colleague will understand next month"

    def read(self, text: str) -> str:
        """The text, unchanged."""
        from storage.audit_trail import check_reason

        try:
            check_reason(text)
        except BadInput as error:
            # The hint of a usage error shows the whole line, not the option alone.
            error.hint = self.hint()
            raise
        return text


class KeyValue(Grammar):
    """`K=V`, for properties and labels: a pair. The value may be empty and may hold `=`; the key may not."""

    name = "k=v"
    sample = "job=loader"
    expected = "a key, =, and a value"

    def read(self, text: str) -> tuple[str, str] | None:
        """The pair, or None."""
        key, equals, value = text.partition("=")
        return (key, value) if key and equals else None


class TransactionLabel(KeyValue):
    """A label of a transaction, among those of open transactions."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The labels of open transactions."""
        from txnctl.cli.complete import labels

        return labels(ctx, incomplete)


def _scaled(text: str, letters: str, units: Mapping[str, int]) -> int | None:
    """A whole number with a unit, such as `15m`, in the smallest unit; None for a text of a different kind."""
    digits = text.rstrip(letters)
    unit = text[len(digits) :]
    factor = units.get(unit, units.get(unit.upper()))
    return int(digits) * factor if factor is not None and _is_natural(digits) else None


def _plain(name: str) -> str:
    return name.upper().replace("-", "").replace("_", "")


def _member(place: str, name: str) -> Any:
    module, _, attribute = place.partition(":")
    enumeration = getattr(__import__(module, fromlist=[attribute]), attribute)
    (constant,) = [member for member in enumeration if _plain(member.name) == _plain(name)]
    return constant


def _words(words: Sequence[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _is_natural(digits: str, digits_max: int = 18) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) <= digits_max


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


DURATION = Duration()
"""Seconds, as the engine's timeouts take them."""

DURATION_MS = Duration(milliseconds=True)
"""Whole milliseconds, as the engine's ages take them."""

SIZE = Size()
POSITION = PositionGrammar()
_POSITION_OR_TIME = POSITION_OR_TIME = PositionGrammar(times=True)
RANGE = RangeGrammar()
TXN_ID = TransactionGrammar()
TOPIC = TopicName()
SUBSCRIPTION = SubscriptionName()
TABLE = TableName()
SESSION = SessionToken()
KEY_VALUE = KeyValue()
LABEL = TransactionLabel()
ISOLATION_LEVEL = NamedConstant(
    "isolation level", ("READ_COMMITTED", "READ_UNCOMMITTED"), "storage:IsolationLevel"
)
SUBSCRIPTION_TYPE = NamedConstant(
    "subscription type", ("Exclusive", "Failover", "Shared", "Key_Shared"), "storage:SubscriptionType"
)
ON_OPEN = NamedConstant("on-open", ("block", "skip"), "storage:OnOpen")
ACCESS_MODE = NamedConstant(
    "access mode",
    ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"),
    "storage:AccessMode",
)
TRANSACTION_ISOLATION = NamedConstant(
    "transaction isolation", ("SERIALIZABLE", "READ_COMMITTED"), "storage:TransactionIsolation"
)
CHECK_MODE = NamedConstant("check mode", ("minimal", "full", "none"), "storage:CheckMode")
PRIORITY = NamedConstant("priority", ("highest", "high", "medium", "low", "lowest"), "storage:Priority")
EXCLUSIVE_MODE = NamedConstant("access mode", ACCESS_MODE.names[1:], "storage:AccessMode")
"""The modes that make an owner."""
ABORT_REASON = NamedConstant(
    "reason",
    (
        "asked",
        "timed-out",
        "owner-dead",
        "lost-conflict",
        "refused-write",
        "fenced",
        "incarnation",
        "retention",
    ),
)
