"""Fields of `txnctl status` and `doctor`, and the verdict in words, for `report` too."""

from __future__ import annotations

from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.output.row import Row

AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks."),
    Field("asOfMs", "timeMs", "The same as an integer."),
)
VERDICT = Field("verdict", "text", "ok, warning or critical: as the worst finding.")
FINDINGS = Field(
    "findings",
    "list",
    "What is wrong, the worst first: code, severity (critical, warning; info: nothing is wrong), about, what, why, and "
    "command, the one to type next.",
)

OVERVIEW = (
    VERDICT,
    *AS_OF,
    Field("store", "map", "As `store info`, with diskFreeBytes and diskBytes of its file system."),
    Field("writerGate", "map", "Who writes at this moment: pid, holder, state (held, stopped); null if nobody."),
    Field("readers", "map", "LMDB's reader table: places inUse of max, views held (reading), the oldest of them."),
    Field("clockSkewMs", "duration", "By how much the wall clock was set; null before the first commit of this boot."),
    Field("topics", "list", "Topics: blockedMessages, blockedBy, uncommittedMessages, visible (the largest lag)."),
    Field("subscriptions", "list", "Subscriptions: visible, blocked, uncommitted, verdict, consumers, heldBy."),
    Field("transactions", "map", "How many are open, the oldest, the late ones (overdue, orphaned), the stopped."),
    Field("producers", "list", "Topics on which producers wait: how many, who is before them, who is next."),
    Field("tables", "list", "Tables: keys, versions, intents, and the open transactions that hold keys (heldBy)."),
    FINDINGS,
)  # fmt: skip


def verdict_text(row: Row) -> str:
    """`WARNING: 3 findings, 1 note`: a finding that only informs is a note, not a problem."""
    notes = sum(finding["severity"] == "info" for finding in row["findings"])
    count = len(row["findings"]) - notes
    text = f"{row['verdict'].upper()}: {plural(count, 'finding')}" if count else "ok"
    return f"{text}, {plural(notes, 'note')}" if notes else text
