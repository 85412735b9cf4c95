"""Fields of a transaction, for `begin`, `list`, `show`, `commit`, `wait` and `reap`."""

from __future__ import annotations

from txnctl.output.field import Help, fields_of

ROW_HELP = {
    "txn_id": Help("The transaction's id.", heading="TXN"),
    "state": Help("OPEN, COMMITTED or ABORTED.", kind="text"),
    "version": Help("Grows with every use: for `abort --if-version`."),
    "labels": Help("What it was given at begin."),
    "owner": Help("Who began it: user@host:pid (program)."),
    "owner_state": Help(
        "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it; null once it has ended."
    ),
    "last_user": Help("Who used it last: user@host:pid (program)."),
    "last_user_state": Help(
        "alive, stopped, dead, rebooted, unknown-host; calling: this very process; null once it has ended."
    ),
    "attached": Help("Whether it belongs to a process, and is aborted when that dies."),
    "orphaned": Help(
        "Whether its process is proven dead; the next writer aborts it, if the reap policy is all."
    ),
    "begin_at_ms": Help("When it began."),
    "age_ms": Help("How long it has been open, or was."),
    "idle_ms": Help("Time since its last use; null once it has ended."),
    "timeout_ms": Help("From begin to deadline."),
    "deadline_in_ms": Help("Time until its deadline, negative after it; null once it has ended."),
    "overdue": Help(
        "Whether its deadline has passed; the next writer aborts it, unless the reap policy is manual."
    ),
    "isolation": Help("SERIALIZABLE, or READ_COMMITTED: it only reads tables."),
    "priority": Help("Who goes on where two transactions want one key: highest, high, medium, low, lowest."),
    "topics": Help("The full names of the topics that it produced to."),
    "tables": Help("The tables that it wrote."),
    "messages": Help("Messages that it produced."),
    "acknowledgements": Help("Messages that it acknowledged."),
    "ended_at_ms": Help("When it was committed or aborted."),
    "reason": Help(
        "Why it was aborted: asked, timed-out, owner-dead, lost-conflict, refused-write and so on."
    ),
    "reason_text": Help("What was said with --reason."),
    "ended_by": Help("Who committed or aborted it."),
    "as_of_at_ms": Help("When this was so."),
}
DETAILS_HELP = {
    **ROW_HELP,
    "check": Help("What a read-committed one does on a write intent; null for a serializable one."),
    "timestamp_ns": Help("The oracle's, given at begin: the version of all that it writes to tables."),
    "conflict": Help(
        "What it lost: kind, table, key, and the winner where it is known; null if it lost nothing."
    ),
    "owner_details": Help("Host, boot, pid, user and program of who began it."),
    "last_used_at_ms": Help("When it was last used."),
    "parts": Help(
        "What it touched: topics with positions, subscriptions with pending messages, tables with keys."
    ),
}

ROW = fields_of("storage.reports.transactions:TransactionRow", ROW_HELP)
"""A transaction in a list."""

FIELDS = fields_of("storage.reports.transactions:TransactionDetails", DETAILS_HELP)
"""All that is known of one."""
