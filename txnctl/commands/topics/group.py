"""`txnctl topics`: create, inspect, trim and delete topics."""

from __future__ import annotations

from txnctl.cli.declaration import Group

topics = Group(
    "topics",
    "Create topics, look into them, trim them, delete them.",
    elsewhere={
        "list": ("txnctl.commands.topics.list:list_", "List the topics."),
        "create": ("txnctl.commands.topics.create:create", "Create an empty topic."),
        "show": ("txnctl.commands.topics.show:show", "Show the facts about one topic."),
        "stats": (
            "txnctl.commands.topics.stats:stats",
            "Show the messages of a topic, readable and blocked, and the blocking transaction.",
        ),
        "stats-internal": (
            "txnctl.commands.topics.stats_internal:stats_internal",
            "Show the ledgers, cursors and aborted transactions of a topic.",
        ),
        "positions": (
            "txnctl.commands.topics.positions:positions",
            "Show the order of ledgers, maxReadPosition, open transactions and cursors.",
        ),
        "peek": ("txnctl.commands.topics.peek:peek", "Show messages without consuming them."),
        "log": (
            "txnctl.commands.topics.log:log",
            "Show the stored entries of a topic, transaction markers included.",
        ),
        "last-message-id": (
            "txnctl.commands.topics.last_message_id:last_message_id",
            "Print the id of the last message that is visible.",
        ),
        "config": (
            "txnctl.commands.topics.config:config",
            "Show or set the limits of what a topic keeps, and its compaction.",
        ),
        "compact": (
            "txnctl.commands.topics.compact:compact",
            "Keep the newest committed message of each key in a compacted view.",
        ),
        "trim": (
            "txnctl.commands.topics.trim:trim",
            "Remove the messages of a topic that are past its retention.",
        ),
        "truncate": (
            "txnctl.commands.topics.truncate:truncate",
            "Remove every message of a topic, and move every subscription to the end.",
        ),
        "delete": (
            "txnctl.commands.topics.delete:delete",
            "Delete a topic, the messages and the subscriptions on it.",
        ),
    },
)
