"""Copies of a store: backup, restore, compact, and the bank's story in a store of its own."""

from __future__ import annotations

import sys

from tests.golden.parts.bank import look_around
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Copy the store `bank`."""
    teller.use("bank")
    with teller.reader("bank"):
        teller.look("store readers", "status", "store info")
        teller.do("transactions begin --timeout 10h")
        teller.look("store readers", "status")
    teller.look("store readers")
    backup, restored = teller.place("backup"), teller.place("restored")
    teller.do(f"store backup {backup} --yes")
    teller.do(f"store backup {backup} --yes")
    teller.do(f"store verify --store {backup}")
    teller.plan(f"store restore {backup} --to {restored} --yes --reason 'after the fire'")
    teller.do(f"store restore {backup} --to {restored} --yes")
    teller.use("restored")
    look_around(teller)
    teller.plan("store compact --yes --reason 'the disk is nearly full'")
    teller.do("store compact --yes", output="ndjson")
    teller.plan(f"store compact --yes --to {teller.place('moved')} --reason 'a larger disk'")
    teller.plan("store upgrade --yes --reason 'the new release is everywhere'")
    look_around(teller)
    copied = teller.place("copied")
    teller.plan(f"store copy {teller.place('restored')} {copied} --yes --reason 'to the new disk'")
    teller.do(f"store copy {teller.place('restored')} {copied} --yes")
    teller.demo([sys.executable, "-m", "txnctl", "demo", "--accounts", "2", "--seed", "4", "-o", "json"])
