"""Steps that the tests of run share."""

from __future__ import annotations

LINES = {
    "ingest": ("in.csv", "requests"),
    "export": ("requests", "out"),
    "monitor": ("requests", "--once"),
    "settle": ("requests", "--table", "accounts", "--once"),
    "audit": ("requests", "--table", "accounts"),
    "run": ("in.csv",),
}
