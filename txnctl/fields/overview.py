"""Fields of `txnctl status` and `doctor`, and the verdict in words, for `report` too."""

from __future__ import annotations

from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.finding import Finding

AS_OF = {"as_of_at_ms": Help("The moment of which the report speaks.", ms_heading=None)}
VERDICT = {"verdict": "ok, warning or critical: as the worst finding."}
FINDINGS = {
    "findings": (
        "What is wrong, the worst first: code, severity (critical, warning; info: nothing is wrong), about, what, why, "
        "and command, the one to type next."
    )
}

_OVERVIEW = {
    **VERDICT,
    **AS_OF,
    "store": "As `store info`, with diskFreeBytes and diskBytes of its file system (null on a server).",
    "writer_gate": (
        "Who writes at this moment: pid, holder, state (held, stopped), and on a server host, program, session, user, "
        "address, activity and heldMs; null if nobody."
    ),
    "readers": (
        "LMDB's reader table: places inUse of max, views held (reading), the oldest of them; on a server the "
        "transactions of all clients."
    ),
    "clock_skew_ms": "By how much the wall clock was set; null before the first commit of this boot.",
    "topics": (
        "Topics: blockedMessages (where all subscriptions pass over open transactions, those that wait for "
        "their key), blockedBy, blockedNext (unused transactions that come after it), uncommittedMessages, "
        "visible (the largest lag)."
    ),
    "subscriptions": "Subscriptions: visible, blocked, delayed, uncommitted, verdict, consumers, heldBy.",
    "transactions": "How many are open, the oldest, the late ones (overdue, orphaned), the stopped.",
    "producers": "Topics on which producers wait: how many, who is before them, who is next.",
    "tables": "Tables: keys, versions, intents, and the open transactions that hold keys (heldBy).",
    "contended_keys": "Keys of tables that transactions keep losing to each other: losses, commits, jobs.",
    "retention_held": "Topics with messages past their retention, and who holds them back (heldBy).",
    "forgotten_subscriptions": "Subscriptions that keep messages and have had no consumer for a week or longer.",
    "quiet_consumers": (
        "Living consumers that hold messages, by quietMs, the time for which each has acknowledged none; key, "
        "keyMessages and firstMessageId where all that it holds is of one key (Key_Shared)."
    ),
    **FINDINGS,
}

OVERVIEW = fields_of("storage.reports.overview:Overview", _OVERVIEW)

REPORT = fields_of(
    "storage.reports.store_report:StoreReport",
    {
        **_OVERVIEW,
        "timelines": "Topics as `transactions timeline` has them, with places and stretches of the drawings.",
        "open_count": "Open transactions of these topics.",
        "open_transactions": "Those that free the most, as `transactions explain` has them; at most 100.",
        "producer_sessions": "Connected and waiting producers, as `producers list`.",
        "space": "As `store space`.",
        "audit": "The last changes by operators, as `audit list`.",
        "ended": "The last transactions that ended, as `transactions history`.",
        "conflicts": "The last conflicts over tables, as `tables history`, without keys.",
        "conflict_counts": "Recorded conflicts by table, kind, loser and winner (labels, program): losses, keys.",
    },
)


def verdict_text(verdict: str, findings: Sequence[Finding]) -> str:
    """`WARNING: 3 findings, 1 note`: a finding that only informs is a note, not a problem."""
    notes = sum(finding.severity == "info" for finding in findings)
    count = len(findings) - notes
    text = f"{verdict.upper()}: {plural(count, 'finding')}" if count else "ok"
    return f"{text}, {plural(notes, 'note')}" if notes else text
