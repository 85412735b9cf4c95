"""`txnctl subscriptions`: cursors, isolation levels and backlogs of subscriptions."""

from __future__ import annotations

from txnctl.cli.declaration import Group

subscriptions = Group(
    "subscriptions",
    "Subscriptions: their cursors, isolation levels and backlogs.",
    elsewhere={
        "list": (
            "txnctl.commands.subscriptions.list:list_",
            "List subscriptions, with their backlogs and verdicts.",
        ),
        "create": ("txnctl.commands.subscriptions.create:create", "Create a subscription without consumers."),
        "show": (
            "txnctl.commands.subscriptions.show:show",
            "Show the facts about one subscription: type, isolation level, cursor, consumers.",
        ),
        "stats": (
            "txnctl.commands.subscriptions.stats:stats",
            "Show the backlog of a subscription by kind, and counts of deliveries.",
        ),
        "lag": (
            "txnctl.commands.subscriptions.lag:lag",
            "Say whether consumers are slow, or blocked by an open transaction.",
        ),
        "pending": (
            "txnctl.commands.subscriptions.pending:pending",
            "List the acknowledgements that wait for their transaction.",
        ),
        "seek": (
            "txnctl.commands.subscriptions.seek:seek",
            "Move a subscription: the message at POSITION is the next one.",
        ),
        "skip": (
            "txnctl.commands.subscriptions.skip:skip",
            "Acknowledge the next messages of a subscription, unread.",
        ),
        "clear-backlog": (
            "txnctl.commands.subscriptions.clear_backlog:clear_backlog",
            "Acknowledge all visible and delayed messages of a subscription, unread.",
        ),
        "ack": (
            "txnctl.commands.subscriptions.ack:ack",
            "Acknowledge messages, plainly or in a transaction.",
        ),
        "nack": (
            "txnctl.commands.subscriptions.nack:nack",
            "Give messages back for redelivery after a delay.",
        ),
        "redrive": (
            "txnctl.commands.subscriptions.redrive:redrive",
            "Give dead letters back to their subscription.",
        ),
        "evict": (
            "txnctl.commands.subscriptions.evict:evict",
            "Detach consumers and redeliver the messages in flight.",
        ),
        "update": (
            "txnctl.commands.subscriptions.update:update",
            "Change the type, isolation level or dead-letter rule of a subscription.",
        ),
        "delete": ("txnctl.commands.subscriptions.delete:delete", "Delete a subscription and the cursor."),
    },
)
