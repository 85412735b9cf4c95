"""Steps that the tests of run share."""

from __future__ import annotations

LINES = {
    "ingest": ("in.csv", "requests"),
    "export": ("requests", "out"),
    "monitor": ("requests", "--once"),
    "settle": ("requests", "--table", "accounts", "--once", "--engine", "spark"),
    "audit": ("requests", "--table", "accounts", "--engine", "spark"),
    "run": ("in.csv",),
}
