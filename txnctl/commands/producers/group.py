"""`txnctl producers`: admission to a topic, the queue of waiting producers, and leader election."""

from __future__ import annotations

from txnctl.cli.declaration import Group

producers = Group(
    "producers",
    "Producers: who may produce to a topic, who waits, and leader election.",
    elsewhere={
        "list": (
            "txnctl.commands.producers.list:list_",
            "List the producers that are connected, or wait for their turn.",
        ),
        "open": (
            "txnctl.commands.producers.open:open_",
            "Open a session, for one shell command after the other, and print its token, alone.",
        ),
        "close": (
            "txnctl.commands.producers.close:close",
            "Close a session: the topic is free for the next.",
        ),
        "show": (
            "txnctl.commands.producers.show:show",
            "Show who has a topic, who waits, who had it, and what a new producer would meet.",
        ),
        "fence": (
            "txnctl.commands.producers.fence:fence",
            "Evict the producers that are connected to a topic: none of them ever publishes there again.",
        ),
        "lead": (
            "txnctl.commands.producers.lead:lead",
            "Wait for exclusive ownership of a topic, run a command as its leader, release it.",
        ),
    },
)
