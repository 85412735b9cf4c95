"""Fields of a transaction, for `begin`, `list`, `show`, `commit`, `wait` and `reap`."""

from __future__ import annotations

from txnctl.output.field import Field

ROW = (
    Field("txnId", "id", "The transaction's id.", heading="TXN"),
    Field("state", "text", "OPEN, COMMITTED or ABORTED."),
    Field("version", "integer", "Grows with every use: for `abort --if-version`."),
    Field("labels", "map", "What it was given at begin."),
    Field("owner", "text", "Who began it: user@host:pid (program)."),
    Field(
        "ownerState",
        "text",
        "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it; null once it has ended.",
    ),
    Field("attached", "boolean", "Whether it belongs to a process, and is aborted when that dies."),
    Field("orphaned", "boolean", "Whether its process is proven dead: the next writer aborts it."),
    Field("beginAt", "time", "When it began."),
    Field("beginMs", "timeMs", "The same as an integer."),
    Field("ageMs", "duration", "How long it has been open, or was."),
    Field("idleMs", "duration", "Time since its last use; null once it has ended."),
    Field("timeoutMs", "duration", "From begin to deadline."),
    Field("deadlineInMs", "duration", "Time until its deadline, negative after it; null once it has ended."),
    Field("overdue", "boolean", "Whether its deadline has passed: the next writer aborts it."),
    Field("isolation", "text", "SERIALIZABLE, or READ_COMMITTED: it only reads tables."),
    Field(
        "priority",
        "text",
        "Who goes on where two transactions want one key: highest, high, medium, low, lowest.",
    ),
    Field("topics", "list", "The full names of the topics that it produced to."),
    Field("tables", "list", "The tables that it wrote."),
    Field("messages", "integer", "Messages that it produced."),
    Field("acknowledgements", "integer", "Messages that it acknowledged."),
    Field("endedAt", "time", "When it was committed or aborted."),
    Field("endedMs", "timeMs", "The same as an integer."),
    Field(
        "reason",
        "text",
        "Why it was aborted: asked, timed-out, owner-dead, lost-conflict, refused-write and so on.",
    ),
    Field("reasonText", "text", "What was said with --reason."),
    Field("endedBy", "text", "Who committed or aborted it."),
    Field("asOfAt", "time", "When this was so."),
    Field("asOfMs", "timeMs", "The same as an integer."),
)
"""A transaction in a list."""

FIELDS = (
    *ROW,
    Field("check", "text", "What a read-committed one does on a write intent; null for a serializable one."),
    Field("timestamp", "id", "The oracle's, given at begin: the version of all that it writes to tables."),
    Field(
        "conflict",
        "map",
        "What it lost: kind, table, key, and the winner where it is known; null if it lost nothing.",
    ),
    Field("ownerDetails", "map", "Host, boot, pid, user and program of who began it."),
    Field("lastUsedAt", "time", "When it was last used."),
    Field("lastUsedMs", "timeMs", "The same as an integer."),
    Field(
        "parts",
        "list",
        "What it touched: topics with positions, subscriptions with pending messages, tables with keys.",
    ),
)
"""All that is known of one."""
