"""Fields of an open transaction that holds back a topic, for `blocked`, `explain` and `timeline`."""

from __future__ import annotations

from txnctl.fields.owner import alive, deadline
from txnctl.output.field import Field
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.output.row import Row

HOLDER = (
    Field("txnId", "id", "The transaction's id.", heading="TXN"),
    Field("topic", "id", "The topic's full name."),
    Field("name", "id", "The topic as people write it."),
    Field("place", "integer", "Its place in the chain; 1 holds maxReadPosition."),
    Field("holdsFrom", "position", "Its first message on the topic: it holds what follows."),
    Field("holdsThrough", "position", "The end of its stretch: just before the next one's first message."),
    Field(
        "frees",
        "integer",
        "Committed messages in its stretch: they can be read when it and all before it have ended.",
    ),
    Field("unblocks", "map", "Of these, by subscription, those that wait there."),
    Field(
        "freesWhereSkipped",
        "integer",
        "What subscriptions with onOpen skip hold behind it: its end alone frees that.",
    ),
    Field(
        "ifEnded",
        "map",
        "If it ended now, and no other did: maxReadPositionBefore, maxReadPositionAfter, frees, staysBlocked.",
    ),
    Field("blockedNext", "id", "The transaction that holds the topic after it; null if it is the last."),
    Field("messages", "integer", "Its own messages on the topic."),
    Field("bytes", "size", "Their bytes."),
    Field("firstPosition", "position", "The first of them."),
    Field("lastPosition", "position", "The last of them."),
    Field("positions", "list", "Where they are: the first 100 stretches of neighbouring entries."),
    Field("producers", "list", "The producers that sent them, as far as they are named."),
    Field("version", "integer", "Grows with every use: for `abort --if-version`."),
    Field("labels", "map", "What it was given at begin."),
    Field("owner", "text", "Who began it: user@host:pid (program)."),
    Field(
        "ownerState", "text", "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it."
    ),
    Field("orphaned", "boolean", "Whether its process is proven dead: the next writer aborts it."),
    Field("overdue", "boolean", "Whether its deadline has passed: the next writer aborts it."),
    Field("beginAt", "time", "When it began."),
    Field("beginMs", "timeMs", "The same as an integer."),
    Field("ageMs", "duration", "How long it has been open."),
    Field("idleMs", "duration", "Time since its last use."),
    Field("deadlineInMs", "duration", "Time until its deadline, negative after it."),
)
"""A link of the chain."""

COLUMNS = (
    Field("place", "integer", "Its place.", heading="#"),
    Field("txnId", "id", "Id.", heading="TXN"),
    Field("holdsFrom", "position", "First message.", heading="HOLDS FROM"),
    Field("ageMs", "duration", "Age.", heading="AGE"),
    Field("idleMs", "duration", "Idle.", heading="IDLE"),
    Field("alive", "text", "Alive."),
    Field("deadline", "text", "Deadline."),
    Field("messages", "integer", "Its own messages.", heading="OWN"),
    Field("frees", "integer", "What it frees.", heading="FREES"),
    Field("who", "text", "Who.", heading="OWNER"),
)


def cells(row: Row) -> Row:
    """The row with the words of the columns."""
    return {**row, "alive": alive(row), "deadline": deadline(row), "who": who(row)}


def who(row: Row) -> str:
    """`job=loader, anna@db-2:48211`: labels and owner."""
    labels = " ".join([f"{name}={value}" for name, value in row["labels"].items()])
    owner = str(row["owner"]).partition(" (")[0]
    return f"{labels}, {owner}" if labels else owner


def waiting(unblocks: Row) -> str:
    """`billing 797, audit 3`: the subscriptions on which messages wait, and how many."""
    return ", ".join([f"{name} {count:,}" for name, count in unblocks.items() if count])


def held_up(row: Row) -> str:
    """`1,200 messages blocked, the oldest for 46m58s`."""
    text = f"{plural(row['blockedMessages'], 'message')} blocked"
    if row["oldestBlockedMs"] is not None:
        text += f", the oldest for {duration(max(0, row['asOfMs'] - row['oldestBlockedMs']))}"
    return text


def then(link: Row) -> str:
    """The transaction before this one, or the transaction that blocks next."""
    if link["place"] > 1:
        yet = (
            f"only {link['freesWhereSkipped']:,} where it is skipped"
            if link["freesWhereSkipped"]
            else "nothing yet"
        )
        return f"{link['first']} comes first: ending this one frees {yet}"
    if link["blockedNext"] is None:
        return "nothing stays blocked"
    stays = link["ifEnded"]["staysBlocked"]
    return (
        f"{stays:,} stay blocked behind {link['blockedNext']}" if stays else f"{link['blockedNext']} follows"
    )
