"""The promise of a store about acknowledged changes."""

from __future__ import annotations

from enum import Enum


class Durability(Enum):
    """The places in which a change is stored before the change is acknowledged."""

    LOCAL = "local"
    """The disk of one machine."""
    REPLICATED = "replicated"
    """The disks of a server and of its synchronous standby."""
