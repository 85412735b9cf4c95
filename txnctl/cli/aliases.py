"""Short names of commands and groups, former or usual names of options, and words of other tools."""

from __future__ import annotations

ALIASES = {"txn": "transactions", "subs": "subscriptions", "ls": "list"}
"""Short name -> full name, valid in every group that has the full name."""

USUAL_WORDS = {
    "describe": ("show",),
    "drain": ("clear-backlog",),
    "info": ("show",),
    "kill": ("abort",),
    "logs": ("log",),
    "publish": ("produce",),
    "purge": ("trim", "clear-backlog"),
    "read": ("peek", "scan", "consume"),
    "reset": ("seek",),
    "rewind": ("seek",),
    "send": ("produce",),
    "stuck": ("doctor",),
    "subscribe": ("consume", "create"),
    "tail": ("log", "consume"),
    "unblock": ("doctor",),
}
"""Word of other tools -> names of commands; the first that a group has is meant. No line runs by such a word."""

USUAL_OPTIONS = {"--json": "-o json", "--ndjson": "-o ndjson", "--wide": "-o wide"}
"""Option of other tools -> an option with its value, of commands that have it."""

OPTION_ALIASES = {
    "--abort-reason": ("--reason",),
    "--count": ("--limit",),
    "--event-time-column": ("--event-time",),
    "--from": ("--since",),
    "--keep-store": ("--keep",),
    "--key-column": ("--key",),
    "--no-newline": ("-n",),
    "--range": ("--since",),
    "--value-column": ("--value",),
}
"""Name of an option -> further names, which every command with that option takes and no help shows."""
