"""Steps that the tests of context share."""

from __future__ import annotations

HOLDER = """
import sys, time
from storage import Store
store = Store.open(sys.argv[1])
def hold(batch):
    print("held", flush=True)
    sys.stdin.read()
store.connection.write(hold)
"""
