"""Fields of an open transaction that holds back a topic, for `blocked`, `explain` and `timeline`."""

from __future__ import annotations

from txnctl.fields.owner import LAST_USER_HELP, about, alive, deadline, process_state, who
from txnctl.output.column import Column
from txnctl.output.field import Help
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.reports.explain import BlockedTopic
    from storage.reports.timeline import Blocking

HOLDER = {
    "txn_id": Help("The transaction's id.", heading="TXN"),
    "topic": Help("The topic's full name.", kind="id"),
    "name": Help("The topic as people write it.", kind="id"),
    "place": Help("Its place in the chain; 1 holds maxReadPosition."),
    "holds_from": Help("Its first message on the topic: it holds what follows."),
    "holds_through": Help("The end of its stretch: just before the next one's first message."),
    "frees": Help(
        "Committed messages in its stretch: they can be read when it and all before it have ended."
    ),
    "unblocks": Help("Of these, by subscription, those that wait there."),
    "frees_where_skipped": Help(
        "What subscriptions with onOpen skip hold behind it: its end alone frees that."
    ),
    "if_ended": Help(
        "If it ended now, and no other did: maxReadPositionBefore, maxReadPositionAfter, frees, staysBlocked."
    ),
    "blocked_next": Help("The transaction that holds the topic after it; null if it is the last."),
    "messages": Help("Its own messages on the topic."),
    "bytes": Help("Their bytes.", kind="size"),
    "first_position": Help("The first of them."),
    "last_position": Help("The last of them."),
    "positions": Help("Where they are: the first 100 stretches of neighbouring entries."),
    "producers": Help("The producers that sent them, as far as they are named."),
    "version": Help("Grows with every use: for `abort --if-version`."),
    "labels": Help("What it was given at begin."),
    "owner": Help("Who began it: user@host:pid (program)."),
    "owner_state": Help("alive, stopped, dead, rebooted, unknown-host; detached: no process holds it."),
    **LAST_USER_HELP,
    "orphaned": Help(
        "Whether its process is proven dead; the next writer aborts it, if the reap policy is all."
    ),
    "overdue": Help(
        "Whether its deadline has passed; the next writer aborts it, unless the reap policy is manual."
    ),
    "begin_at_ms": Help("When it began."),
    "age_ms": Help("How long it has been open."),
    "idle_ms": Help("Time since its last use."),
    "deadline_in_ms": Help("Time until its deadline, negative after it."),
}
"""A link of the chain."""

COLUMNS: tuple[Column[Blocking], ...] = (
    Column("#", "integer", lambda link: link.place, rank=4),
    Column("TXN", "id", lambda link: link.holder.txn_id),
    Column("HOLDS FROM", "position", lambda link: link.holds_from),
    Column("AGE", "duration", lambda link: link.holder.age_ms),
    Column("IDLE", "duration", lambda link: link.holder.idle_ms, rank=2),
    Column("ALIVE", "text", lambda link: alive(link.holder)),
    Column("DEADLINE", "list", lambda link: deadline(link.holder), rank=3),
    Column("OWN", "integer", lambda link: link.written.messages, rank=1),
    Column("FREES", "integer", lambda link: link.frees),
    Column("OWNER", "list", lambda link: who(link.holder)),
)


def facts(transaction: Blocking) -> str:
    """`0:1187 from 12:4472: 15 own, frees 797; alive, idle 46m58s; job=loader`."""
    holder = transaction.holder
    state = f"{'OVERDUE, ' if holder.overdue else ''}{process_state(holder)}"
    return (
        f"{holder.txn_id} from {transaction.holds_from}: {transaction.written.messages:,} own, "
        f"frees {transaction.frees:,}; {state}, idle {duration(holder.idle_ms)}; {about(holder)}"
    )


def waiting(unblocks: Mapping[str, int]) -> str:
    """`billing 797, audit 3`: the subscriptions on which messages wait, and how many."""
    return ", ".join([f"{name} {count:,}" for name, count in unblocks.items() if count])


def held_up(blocked: int, oldest_ms: int | None, now_ms: int) -> str:
    """`1,200 messages blocked, the oldest for 46m58s`."""
    text = f"{plural(blocked, 'message')} blocked"
    return text if oldest_ms is None else f"{text}, the oldest for {duration(max(0, now_ms - oldest_ms))}"


def then(link: BlockedTopic) -> str:
    """The transaction before this one, or the transaction that blocks next."""
    if link.place > 1:
        yet = (
            f"only {link.frees_where_skipped:,} where it is skipped"
            if link.frees_where_skipped
            else "nothing yet"
        )
        return f"{link.first} comes first: ending this one frees {yet}"
    if link.blocked_next is None:
        return "nothing stays blocked"
    stays = link.if_ended.stays_blocked
    return f"{stays:,} stay blocked behind {link.blocked_next}" if stays else f"{link.blocked_next} follows"
