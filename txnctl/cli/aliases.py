"""Short names of commands and groups."""

from __future__ import annotations

ALIASES = {"txn": "transactions", "subs": "subscriptions", "ls": "list"}
"""Short name -> full name, valid in every group that has the full name."""
