"""Hostile names, positions, messages, NDJSON, CSV and invocations: `python -m tests.faults.hostile [INPUTS] [SEED]`.

Commands run one after the other in two processes, with streams of their own, as fast as parsing allows. Every line of input
and every command line is an input. Each command ends with an exit code and one error of txnctl: no traceback, no "bug", no
signal, no wait. Now and then the store is verified in full, and a new one takes its place. An input is named by seed and
number: `python -m tests.faults.hostile 1 SEED NUMBER` runs that one alone.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from storage import Store, SubscriptionType
from tests.faults.children import in_children
from txnctl.cli.main import main as run_command

_STORE: Final = "store"
_EPOCH: Final = 1_500
"""Commands on one store."""
_PATIENCE_S: Final = 30

WORDS: Final = (
    "", " ", ".", "..", "/", "-", "--", "-1", "0", "1", "00", "1e9", "1.5", "NaN", "inf", "-inf", "null", "true", "[]", "{}",
    "0x10", "1_000", "\u0661\u0662", "9" * 30, "-" + "9" * 30, "\0", "\n", "\r\n", "\t", "\x1b[31m", "\x7f", "\u202e", "\ufeff",
    "\udcff", "\ud800", "\U0001f600", "größe", "a" * 129, "a" * 4_000, "%s%n", "$(id)", "`id`", "'", '"', "\\", ";", "|", "*",
    "orders", "persistent://public/default/orders", "persistent://public/default/", "non-persistent://a/b/c", "orders-DLQ",
    "earliest", "latest", "@0", "@now", "@2024-02-30", "@9999-12-31T23:59:59Z", "@-5m", "1:0", "1:-1", "1:0:0", "0:0", "0:1",
    "18446744073709551616:0", "1:18446744073709551615", ":", "::", "1:", ":1", "7d", "10GiB", "-1s", "1y", "0ms", "1e3h", "unset",
    "read-committed", "shared", "exclusive", "json", "ndjson", "csv", "table", "name", "help", "k=v", "=", "==", "k=", "=v",
)  # fmt: skip

OPTIONS: Final = (
    "-o", "--output", "--from", "--to", "-n", "--count", "-s", "--subscription", "--subscription-type", "--isolation-level",
    "--on-open", "-k", "--key", "-p", "--property", "--event-time", "--producer", "--sequence-id", "--access-mode", "--epoch",
    "--session", "--txn", "--batch", "--input", "--on-error", "--reason", "--color", "--null", "--atomic", "--create", "--print-ids",
    "--dry-run", "--yes", "--force", "-h", "--help", "--version", "-q", "--unknown", "-z", "--retention-time",
    "--retention-size", "--label", "--priority", "--isolation", "--check", "--cumulative", "--prefix", "--count", "--reverse",
)  # fmt: skip

COMMANDS: Final = (
    "produce", "consume", "status", "check", "audit", "config", "errors", "version", "topics create", "topics list", "topics show",
    "topics stats", "topics log", "topics peek", "topics last-message-id", "topics config", "topics trim", "topics truncate",
    "topics delete", "subscriptions create", "subscriptions list", "subscriptions show", "subscriptions seek",
    "subscriptions skip", "subscriptions ack", "subscriptions nack", "subscriptions lag", "subscriptions clear-backlog",
    "subscriptions redrive", "subscriptions delete", "subscriptions update", "subscriptions pending", "producers list",
    "producers show", "producers fence", "transactions begin", "transactions commit", "transactions abort", "transactions list",
    "transactions show", "transactions explain", "transactions timeline", "transactions blocked", "tables create", "tables put",
    "tables get", "tables rm", "tables scan", "tables history", "tables import", "tables export", "tables delete", "store info",
    "store config", "store space", "store locks", "store readers", "nonsense", "topics", "topics nonsense", "txn list", "subs list",
)  # fmt: skip
_MAY_WAIT: Final = {"-f", "--follow", "--exec", "--timeout"}


class Input(NamedTuple):
    """A command line and its input."""

    words: list[str]
    input: bytes

    @property
    def count(self) -> int:
        """Inputs: the command line, and each line of its input."""
        return 1 + self.input.count(b"\n")


def hostile(seed: int, number: int) -> Input:
    """The input of a number."""
    chance = random.Random(f"{seed} {number}")
    make = chance.choice((_name, _position, _ndjson, _ndjson, _csv, _lines, _rows, _invocation, _invocation))
    words, text = make(chance)
    return Input([word for word in words if word not in _MAY_WAIT], text)


def _word(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.6:
        return chance.choice(WORDS)
    if kind < 0.8:
        return chance.choice(WORDS) + chance.choice(WORDS)
    return "".join(
        chr(chance.choice((chance.randrange(1, 128), chance.randrange(0x110000))))
        for _ in range(chance.randrange(12))
    )


def _name(chance: random.Random) -> tuple[list[str], bytes]:
    commands = (
        ["topics", "create"], ["topics", "stats"], ["tables", "create"], ["tables", "scan"], ["subscriptions", "create", "orders"],
        ["produce"], ["transactions", "show"], ["producers", "list"], ["tables", "get", "rows"], ["consume"],
    )  # fmt: skip
    return [*chance.choice(commands), "--", _word(chance)], b""


def _position(chance: random.Random) -> tuple[list[str], bytes]:
    commands = (
        ["consume", "orders", "--from={}"], ["consume", "orders", "--to={}"], ["subscriptions", "seek", "orders", "s", "--yes", "--", "{}"],
        ["subscriptions", "ack", "orders", "s", "--yes", "--", "{}"], ["topics", "peek", "orders", "--from={}"],
        ["topics", "log", "orders", "--from={}"], ["subscriptions", "nack", "orders", "s", "--", "{}"],
    )  # fmt: skip
    word = _word(chance)
    return [part.replace("{}", word) for part in chance.choice(commands)], b""


def _json_value(chance: random.Random, depth: int = 0) -> object:
    kind = chance.randrange(10)
    if kind < 4 or depth > 3:
        return chance.choice((_word(chance), chance.randrange(-5, 5), 2**70, 1e308, -0.0, None, True, [], {}))
    if kind < 6:
        return [_json_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {_word(chance): _json_value(chance, depth + 1) for _ in range(chance.randrange(4))}


_FIELDS: Final = (
    "value",
    "key",
    "properties",
    "eventTime",
    "sequenceId",
    "valueBase64",
    "value64",
    "deliverAt",
    "x",
)


def _json_line(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.1:
        return b"[" * chance.choice((3, 5_000)) + b"]" * chance.randrange(4)
    if kind < 0.2:
        return chance.randbytes(chance.randrange(40)).replace(b"\n", b"")
    fields = {name: _json_value(chance) for name in chance.sample(_FIELDS, chance.randrange(1, 5))}
    if chance.random() < 0.5:
        fields["value"] = _word(chance)
    line = json.dumps(fields, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if kind < 0.4:
        at = chance.randrange(len(line))
        line = line[:at] + chance.randbytes(1) + line[at + chance.randrange(2) :]
    return line.replace(b"\n", b" ")


def _lines_of(chance: random.Random, make: Callable[[random.Random], bytes]) -> bytes:
    ending = chance.choice((b"\n", b"\n", b"\r\n"))
    return b"".join(make(chance) + ending for _ in range(chance.randrange(1, 40)))


def _ndjson(chance: random.Random) -> tuple[list[str], bytes]:
    words = ["produce", "orders", "--input", "ndjson", "--on-error", "skip"]
    return words + chance.choice(([], ["--atomic"], ["--create"])), _lines_of(chance, _json_line)


def _rows(chance: random.Random) -> tuple[list[str], bytes]:
    words = ["tables", "import", "rows", "--input", chance.choice(("ndjson", "csv"))]
    return words, _lines_of(chance, chance.choice((_json_line, _csv_line)))


def _csv_line(chance: random.Random) -> bytes:
    cells = [_word(chance).replace("\n", " ") for _ in range(chance.randrange(6))]
    quoted = [f'"{cell}"' if chance.random() < 0.3 else cell for cell in cells]
    return ",".join(quoted).encode("utf-8", "surrogatepass")


def _csv(chance: random.Random) -> tuple[list[str], bytes]:
    header = chance.choice(
        (
            b"value\n",
            b"key,value\n",
            b"value,key,properties.a\n",
            b"\n",
            b"value,value\n",
            b"\xef\xbb\xbfvalue\n",
        )
    )
    return [
        "produce",
        "orders",
        "--input",
        "csv",
        "--on-error",
        chance.choice(("skip", "stop")),
    ], header + _lines_of(chance, _csv_line)


def _lines(chance: random.Random) -> tuple[list[str], bytes]:
    raw = _lines_of(chance, lambda chance: chance.randbytes(chance.randrange(60)).replace(b"\n", b""))
    return ["produce", "orders", "--input", chance.choice(("lines", "raw"))], raw


def _invocation(chance: random.Random) -> tuple[list[str], bytes]:
    words = chance.choice(COMMANDS).split()
    for _ in range(chance.randrange(6)):
        words.append(chance.choice(OPTIONS) if chance.random() < 0.4 else _word(chance))
    return words, b""


class Ended(NamedTuple):
    """Counts of one process, and what must not be."""

    inputs: int
    codes: Counter[int]
    failures: list[str]


def _prepare() -> None:
    shutil.rmtree(_STORE, ignore_errors=True)
    Store.create(_STORE)
    with Store.open(_STORE) as store:
        store.create_topic("orders")
        store.create_table("rows")
        store.admin.subscriptions.create_subscription(
            "orders", "s", subscription_type=SubscriptionType.SHARED
        )
        for number in range(20):
            store.create_producer("orders", connected=False).send(b"%d" % number)
            store.table("rows").put(b"%d" % number, b"v")


def _run(hostile_input: Input) -> tuple[int, str]:
    """Run a command; its exit code, and what it says on standard error."""
    for descriptor, data in ((0, hostile_input.input), (1, b""), (2, b"")):
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the next command's
    signal.alarm(_PATIENCE_S)
    code = run_command(hostile_input.words)
    signal.alarm(0)
    sys.stdout.flush()
    sys.stderr.flush()
    return code, os.pread(2, 1 << 16, 0).decode(errors="replace")


def _is_bad(code: int, errors: str) -> bool:
    return code == 1 or "Traceback" in errors or "This is a bug" in errors or not 0 <= code < 256


def work(directory: str, seed: int, first: int, step: int, inputs: int) -> Ended:
    """Run numbers `first`, `first + step` and so on, until so many inputs were given."""
    os.makedirs(directory, exist_ok=True)
    os.chdir(directory)
    for target, name in enumerate(("input", "output", "errors")):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(descriptor, target)
    faulthandler.enable(open("fault", "w"))  # noqa: SIM115 - for as long as the process lives
    os.environ.update(TXNCTL_STORE=_STORE, TXNCTL_LOCK_TIMEOUT="1s", COLUMNS="80")
    count, codes, failures, number, commands = 0, Counter[int](), [], first, 0
    while count < inputs:
        if commands % _EPOCH == 0:
            failures += _verified() if commands else []
            _prepare()
        commands += 1
        given = hostile(seed, number)
        with open("last", "w") as file:
            file.write(str(number))
        code, errors = _run(given)
        codes[code] += 1
        count += given.count
        if _is_bad(code, errors):
            failures.append(f"input {number}: {given.words}: exit code {code}: {errors[-600:]}")
        number += step
    return Ended(count, codes, failures + _verified())


def _verified() -> list[str]:
    with Store.open(_STORE) as store:
        return [f"verify: {problem.message}" for problem in store.maintenance.verify_store(full=True)]


def main(inputs: int = 1_000_000, seed: int = 1, only: int | None = None) -> int:
    """Give so many hostile inputs, in two processes; print the counts, and return the number of failures."""
    at_once = 1 if only is not None else 2
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    counts, codes, failures = 0, Counter[int](), []
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        calls = [
            (place, lambda place=place, first=first: work(place, seed, first, at_once, inputs // at_once))
            for first in ([only] if only is not None else range(at_once))
            for place in [os.path.join(directory, str(first))]
        ]
        for ended in in_children(calls, at_once):
            if ended.result is None:
                with open(os.path.join(ended.name, "last")) as last:
                    failures.append(f"input {last.read()}: {ended.death}")
                continue
            counts, codes = counts + ended.result.inputs, codes + ended.result.codes
            failures += ended.result.failures
    for failure in failures[:50]:
        print(failure)
    print(
        f"{counts} hostile inputs in {sum(codes.values())} commands, seed {seed}: exit codes {dict(sorted(codes.items()))}"
    )
    print(f"{len(failures)} tracebacks, signals or broken stores")
    return len(failures)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
