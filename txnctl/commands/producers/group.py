"""`txnctl producers`: admission to a topic, the queue of waiting producers, and leader election."""

from __future__ import annotations

from txnctl.cli.declaration import Group

producers = Group(
    "producers",
    "Producers: who may produce to a topic, who waits, and leader election.",
    elsewhere={
        "list": ("txnctl.commands.producers.list:list_", "List connected and waiting producers."),
        "open": (
            "txnctl.commands.producers.open:open_",
            "Open a session for a sequence of shell commands, and print the token, alone.",
        ),
        "close": (
            "txnctl.commands.producers.close:close",
            "Close a session: the topic is free for the next.",
        ),
        "show": (
            "txnctl.commands.producers.show:show",
            "Show the owner of a topic, the queue, past owners, and the outcome for a new producer.",
        ),
        "fence": (
            "txnctl.commands.producers.fence:fence",
            "Evict the connected producers of a topic, and raise the topic epoch.",
        ),
        "lead": (
            "txnctl.commands.producers.lead:lead",
            "Wait for exclusive ownership of a topic, run a command as the leader, release the topic.",
        ),
    },
)
