"""Tables: rows of text and bytes, versions, transactions that hold keys or lose them, what is removed by age."""

from __future__ import annotations

from tests.golden.parts.bank import look_around
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Work on the tables `balances` and `notes`."""
    teller.do("tables create balances")
    teller.do("tables create notes", output="ndjson")
    teller.look("tables list", "tables show balances", "tables stats balances", "tables scan balances")
    _read(teller, _write(teller))
    _conflicts(teller)
    _import(teller)
    look_around(teller)
    _collect(teller)


def _write(teller: Teller) -> int:
    version = teller.do("tables put balances alice 100")["version"]
    teller.do(f"tables put balances alice 90 --if-version {version}")
    teller.do(f"tables put balances alice 80 --if-version {version}")
    teller.do("tables put balances alice 80 --if-absent")
    teller.do("tables put balances bob 1 --if-absent", output="ndjson")
    teller.do("tables put balances /wA= --key-base64 -", b"\xff\xfe")
    teller.do("tables put balances carol 7 --priority highest")
    teller.do("tables rm balances carol")
    teller.do("tables rm balances carol")
    teller.do("tables rm balances carol --missing-ok")
    teller.do("tables put notes empty ''")
    return int(version)


def _read(teller: Teller, version: int) -> None:
    txn = teller.do("transactions begin --timeout 10h --priority high --label job=book")["txnId"]
    reader = teller.do("transactions begin --timeout 10h --isolation read-committed --check full")["txnId"]
    teller.do(f"tables put balances dave 5 --txn {txn}")
    teller.do(f"tables rm balances bob --txn {txn}")
    teller.look(
        "tables get balances alice",
        f"tables get balances alice --txn {txn}",
        "tables get balances /wA= --key-base64",
        "tables get balances bob",
        f"tables get balances bob --txn {txn}",
        "tables get balances dave --check none",
        f"tables get balances alice --txn {reader}",
        "tables get balances alice --at 2024-01-01T00:00:00Z",
        f"tables get balances alice --at {version}",
        f"tables scan balances --at {version}",
        "tables get balances alice --at nonsense",
        "tables scan balances",
        "tables scan balances --prefix a",
        "tables scan balances --start b --end d --reverse -n 1",
        f"tables scan balances --txn {txn}",
        "tables versions balances alice",
        "tables versions balances bob",
        "tables versions balances carol",
        "tables versions balances /wA= --key-base64",
        "tables intents balances",
        "tables intents -n 1",
        "tables stats balances",
        "tables show balances",
        f"transactions show {txn}",
        f"transactions show {reader}",
        f"transactions explain {txn}",
    )
    teller.do("tables export balances", output="ndjson")
    teller.do("tables export balances", output="csv")
    teller.do(f"tables put balances x 1 --txn {reader}")
    teller.do("tables delete balances --yes")
    teller.wait(120)
    teller.look("doctor", "status")
    teller.do("tables put balances dave 6 --priority lowest")
    teller.do("tables put balances dave 7 --priority highest")
    teller.look("tables history", "tables history balances -n 1", f"transactions show {txn}")


def _conflicts(teller: Teller) -> None:
    older = teller.do("transactions begin --timeout 10h")["txnId"]
    newer = teller.do("transactions begin --timeout 10h")["txnId"]
    low = teller.do("transactions begin --timeout 10h --priority low")["txnId"]
    high = teller.do("transactions begin --timeout 10h --priority high")["txnId"]
    teller.do(f"tables get balances alice --txn {newer}")
    teller.do(f"tables put balances alice 1 --txn {older}")
    teller.do(f"tables put balances alice 2 --txn {newer}")
    teller.do(f"tables put balances erin 1 --txn {low}")
    teller.do(f"tables put balances erin 2 --txn {high}")
    teller.do(f"tables get balances erin --txn {low}")
    teller.do(f"transactions commit {low}")
    teller.look(f"transactions show {low}", f"transactions explain {low}", f"transactions show {older}")
    teller.do(f"transactions commit {high}")
    teller.do(f"transactions commit {newer}")
    teller.look("tables history", "transactions history")


def _import(teller: Teller) -> None:
    teller.do(
        "tables import copied --create",
        b'{"key":"a","value":"1"}\n{"keyBase64":"/w==","valueBase64":"/g=="}\n',
    )
    teller.do("tables import copied --input csv", b"key,value\nb,2\n", output="ndjson")
    teller.do("tables import copied", b'{"key":"a"\n')
    txn = teller.do("transactions begin --timeout 10h")["txnId"]
    teller.do(f"tables import copied --txn {txn}", b'{"key":"c","value":"3"}\n')
    teller.do("tables delete copied --yes")
    teller.plan("tables delete copied --yes --force --reason 'a copy'")


def _collect(teller: Teller) -> None:
    teller.look("store config", "store config reap-policy", "store config table-retention")
    teller.plan("store config table-retention 1s --yes --reason space")
    teller.plan("store config sequence-retention 30d --yes --reason 'late retries'")
    teller.plan("store config dead-letter-retention-time 14d --yes")
    teller.plan("store config reap-policy overdue --yes")
    teller.wait(10)
    teller.do("tables get balances alice --at 2024-01-01T12:10:00Z")
    teller.plan("store gc --yes")
    teller.do("store gc --trust-clock --yes --reason looked", output="ndjson")
    teller.do("store config reap-policy all --yes", output="ndjson")
    teller.look(
        "tables list",
        "tables versions balances alice",
        "store info",
        "store space",
        "store space --freeable",
        "store space --topics",
        "audit list -n 3",
    )
    for number in (1, 2, 3):
        teller.look(f"audit show {number}")
