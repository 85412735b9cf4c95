"""Errors of every kind that a command line can bring about at little cost, as JSON on standard error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.golden.teller import Teller

_WRONG = (
    "nonsense",
    "topics nonsense",
    "topics list --nonsense",
    "topics create",
    "topics create 'a b'",
    "topics create orders",
    "topics create x --ledger-entries 0",
    "topics show nothing",
    "topics show ordres",
    "topics peek orders --from nonsense",
    "topics log orders --range 5..4",
    "topics log orders --range 99:99..",
    "topics peek orders -s nothing",
    "subscriptions show orders nothing",
    "subscriptions create orders billing",
    "subscriptions create orders x --max-redeliver-count -1",
    "subscriptions ack orders billing 99:99 --yes",
    "subscriptions ack orders billing nonsense --yes",
    "subscriptions seek orders billing 99:0 --yes",
    "subscriptions skip orders billing 0 --yes",
    "subscriptions delete orders billing",
    "subscriptions evict orders billing nobody --yes",
    "subscriptions clear-backlog orders billing --beyond-max-read --yes",
    "consume nothing -n 1",
    "consume orders -s x --to latest",
    "consume orders --from nonsense",
    "produce nothing -m x",
    "produce orders -m x --txn nonsense",
    "produce orders -m x --txn 0:999",
    "produce orders -m x --session nonsense",
    "produce orders -m x --epoch 3",
    "produce orders -m x --event-time nonsense",
    "produce orders -m x --sequence-id 5",
    "producers show nothing",
    "producers close nonsense --yes",
    "producers open orders --lease 0s",
    "producers fence orders",
    "producers lead orders --timeout nonsense cat",
    "transactions show 0:999",
    "transactions show",
    "transactions begin --timeout 48h",
    "transactions begin --timeout nonsense",
    "transactions begin --label nonsense",
    "transactions begin --priority nonsense",
    "transactions commit 0:999",
    "transactions timeline nothing",
    "transactions history --since nonsense",
    "tables show nothing",
    "tables create 'a b'",
    "tables create balances",
    "tables get balances nothing",
    "tables get balances '!' --key-base64",
    "tables rm balances nothing",
    "tables delete balances",
    "tables scan nothing",
    "audit show 999",
    "errors explain nonsense",
    "store config nonsense",
    "store config reap-policy nonsense --yes",
    "store restore nothing --to copy",
    "store backup /dev/null",
    "report --html",
    "completion nonsense",
    "pipeline offload nothing there",
    "pipeline run nothing.py",
    "pipeline sql 'SELECT 1' --table accounts=nothing",
    "demo --data nothing.csv",
)

_HOLD_GATE = """
import fcntl, struct, sys
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("@hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
print("held", flush=True)
sys.stdin.read()
"""


def play(teller: Teller) -> None:
    """Bring the errors about, in the store `stuck` and in stores that are damaged."""
    for line in _WRONG:
        teller.do(line)
    _input(teller)
    _states(teller)
    _places(teller)
    _busy(teller)
    teller.text("top")


def _input(teller: Teller) -> None:
    teller.do("produce orders --input ndjson", b'{"value":"good"}\n{"value":5}\n')
    teller.do("produce orders --input ndjson", b"nonsense\n")
    teller.do("produce orders --input csv", b"a,b\n1\n")
    teller.do("produce orders --input raw", b"x" * (6 << 20))
    teller.do("tables import balances", b'{"value":"1"}\n')
    with teller.environment(TXNCTL_OUTPUT="nonsense"):
        teller.do("topics list", output="json")
        teller.text("topics list --store nothing -o ndjson")
    with teller.environment(TXNCTL_LOCK_TIMEOUT="nonsense"):
        teller.do("topics list")
    with teller.environment(TXNCTL_TXN="0:1"):
        teller.text("transactions run -o json -- true")
        teller.text("--debug transactions show 0:999 -o json")


def _states(teller: Teller) -> None:
    txn = teller.do("transactions begin --timeout 10h")["txnId"]
    teller.do(f"produce orders --producer p --sequence-id 5 --txn {txn}", b"x\n")
    teller.do("produce orders --producer p --sequence-id 5", b"x\n")
    found = teller.do(f"produce orders -m open --txn {txn}")["lastMessageId"]
    teller.do(f"subscriptions ack orders billing {found} --yes")
    teller.do(f"transactions abort {txn}")
    teller.do(f"transactions commit {txn}")
    teller.do(f"transactions abort {txn} --yes")
    with teller.environment(TXNCTL_TXN=txn):
        os.environ["TXNCTL_OUTPUT"] = "json"
        teller.text("transactions run -- true")
        del os.environ["TXNCTL_OUTPUT"]


def _places(teller: Teller) -> None:
    stuck = Path(teller.place("stuck"))
    for name in ("torn", "flipped", "damaged", "open", "linked", "lockless"):
        shutil.copytree(stuck, teller.place(name))
    torn, flipped, damaged = (
        Path(teller.place(name)) / "data.mdb" for name in ("torn", "flipped", "damaged")
    )
    flipped.write_bytes(flipped.read_bytes().replace(b"behind 0", b"behind 9"))
    os.truncate(torn, 3 * 4096)
    damaged.write_bytes(b"nonsense" * 4096)
    os.chmod(teller.place("open"), 0o777)
    link = Path(teller.place("linked")) / "data.mdb"
    link.unlink()
    link.symlink_to(stuck / "data.mdb")
    (Path(teller.place("lockless")) / "store.lock").unlink()
    Path(teller.place("file")).write_text("text")
    Path(teller.place("directory")).mkdir()
    for name in ("torn", "flipped", "damaged", "open", "linked", "lockless", "file", "directory", "nothing"):
        teller.use(name)
        for line in ("store info", "doctor", "store verify"):
            teller.do(line)
        teller.text("check --format json")
        teller.text("check --format prometheus")
    teller.use("stuck")
    system, teller.clock.sysname = teller.clock.sysname, "Plan9"
    for line in ("store info", "doctor"):
        teller.do(line)
    teller.clock.sysname = system


def _busy(teller: Teller) -> None:
    lock = Path(teller.place("stuck")) / "store.lock"
    words = [sys.executable, "-c", _HOLD_GATE, str(lock)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        teller.do("produce orders -m x --lock-timeout 10ms")
        teller.look("status")
        teller.text("check --format json")
    child = teller.start_ready("transactions run")
    teller.do("store compact --yes --lock-timeout 10ms")
    child.kill()
    teller.do("transactions reap --yes")
    teller.text(f"topics list -o json --store {json.dumps(teller.place('nothing'))}")
