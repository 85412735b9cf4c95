"""Steps that the tests of store commands share."""

from __future__ import annotations

WAITING = """
import signal, sys
from storage import Store, faults
store = Store.open(sys.argv[1])
consumer = store.subscribe("orders", "billing")
print("ready", flush=True)
signal.pause()
"""
