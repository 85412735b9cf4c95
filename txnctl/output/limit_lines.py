"""Limits of topics in words: values, and present effects."""

from __future__ import annotations

from txnctl.output.human import NOTHING_KEPT, duration, plural, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.admin.limit_forecast import LetGo
    from storage.subscription.hard_trimming import Loss

_HARD = {
    "off": "off: what is not acknowledged is kept",
    "trim": "trim: what is not acknowledged goes too, and is lost",
    "refuse": "refuse: beyond the limits producers are refused",
}


def limit_time(milliseconds: int | None) -> str:
    """A limit of age."""
    return "no limit" if milliseconds is None else duration(milliseconds) if milliseconds else NOTHING_KEPT


def limit_size(byte_count: int | None) -> str:
    """A limit of size."""
    return "no limit" if byte_count is None else size(byte_count) if byte_count else NOTHING_KEPT


def limit_hard(hard: str | None) -> str:
    """The effect of limits on messages that are not acknowledged."""
    return _HARD[hard or "off"]


def let_go(row: LetGo, *, dry_run: bool) -> Iterator[str]:
    """The present effects of limits, a line for each kind."""
    would = "They would let go of" if dry_run else "They let go of"
    if not any(row):
        yield f"{would} nothing now."
        return
    ledgers, messages = plural(row.ledgers, "ledger"), plural(row.messages, "message")
    least = " at least" if row.has_more else ""
    yield f"{would}{least} {ledgers} now: {messages}, {size(row.bytes)}."
    for number, what in (
        (row.messages_lost, "not acknowledged by a subscription, and lost to it"),
        (row.messages_expired, "past their time to live, acknowledged for a subscription"),
    ):
        if number:
            yield f"  {plural(number, 'message')} {what}"
    if row.subscriptions_expired:
        yield f"  {plural(row.subscriptions_expired, 'subscription')} without a consumer, deleted"
    if row.transactions_aborted:
        yield f"  {plural(row.transactions_aborted, 'open transaction')} in the way, aborted"


def losses(lost: Sequence[Loss], expired: Sequence[Loss], *, dry_run: bool) -> Iterator[str]:
    """A line for each subscription with lost or expired messages."""
    for rows, word in (
        (lost, "loses" if dry_run else "lost"),
        (expired, "expires" if dry_run else "expired"),
    ):
        for row in rows:
            yield f"  subscription {row.subscription} {word} {plural(row.messages, 'message')}"
