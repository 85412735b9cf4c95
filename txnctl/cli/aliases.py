"""Short names of commands and groups, and former or usual names of options."""

from __future__ import annotations

ALIASES = {"txn": "transactions", "subs": "subscriptions", "ls": "list"}
"""Short name -> full name, valid in every group that has the full name."""

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
