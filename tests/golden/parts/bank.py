"""A store from its first day: commands before the store exists, topics, messages of every kind, a topic's ledgers."""

from __future__ import annotations

import json

from tests.golden.teller import Teller

LOOKS = (
    "status",
    "doctor",
    "doctor --programs",
    "store info",
    "store space",
    "store locks",
    "store readers",
    "store config",
    "topics list",
    "subscriptions list",
    "producers list",
    "transactions list",
    "transactions list --ended",
    "transactions history",
    "transactions blocked",
    "transactions blocked --chain",
    "transactions slow",
    "transactions orphans",
    "tables list",
    "tables intents",
    "tables history",
    "audit list",
)
"""Commands that read a whole store."""


def look_around(teller: Teller) -> None:
    """Run every command that reads a whole store, and the checks of monitoring."""
    teller.look(*LOOKS)
    teller.do("store verify")
    teller.do("store verify --quick")
    check(teller)


def check(teller: Teller) -> None:
    """Run `check` for each system of monitoring."""
    for words in ("json", "json --warn late=3 --critical blocked-age=1s --exit-code", "prometheus"):
        teller.text(f"check --format {words}")


def look_at_topic(teller: Teller, topic: str) -> None:
    """Run every command that reads one topic."""
    for words in ("show", "stats", "stats-internal", "positions", "peek", "log", "last-message-id"):
        teller.look(f"topics {words} {topic}")
    teller.look(
        f"topics peek {topic} --isolation-level read-uncommitted -n 100",
        f"topics last-message-id {topic} --isolation-level read-uncommitted",
        f"topics log {topic} --range -500",
        f"producers show {topic}",
        f"producers list {topic}",
        f"transactions timeline {topic}",
        f"transactions list --ended --topic {topic}",
        f"transactions blocked {topic} --chain",
        f"subscriptions list {topic}",
    )


def play(teller: Teller) -> None:
    """Make the store `bank` and put messages into it."""
    _without_store(teller)
    teller.do("store init")
    teller.do("store init", output="json")
    look_around(teller)
    _topics(teller)
    _messages(teller)
    _exclusive(teller)
    look_at_topic(teller, "orders")
    look_around(teller)
    _reads(teller)


def _without_store(teller: Teller) -> None:
    teller.do("version")
    teller.look("config show", "errors list", "errors explain busy", "errors explain lost-conflict")
    with teller.environment(TXNCTL_OUTPUT="json", TXNCTL_LOCK_TIMEOUT="30s", NO_COLOR="1"):
        teller.look("config show --color always --store elsewhere")
    for line in ("status", "doctor", "store info", "topics list", "produce orders -m x"):
        teller.do(line)
    check(teller)


def _topics(teller: Teller) -> None:
    teller.do("topics create orders --ledger-entries 5 --ledger-age 1h --ledger-bytes 1M")
    teller.do("topics create persistent://bank/core/payments", output="ndjson")
    teller.do("topics create payments --ledger-bytes 64K")
    teller.do("topics create quiet")
    teller.do("topics create doomed")
    teller.do("produce doomed -m a -m b")
    teller.do("subscriptions create doomed reader --from earliest")
    teller.look("topics config doomed")
    teller.plan("topics config doomed --retention-time 7d --retention-size 10G")
    teller.plan("topics trim doomed")
    teller.plan("topics compact doomed")
    teller.plan("topics truncate doomed --yes")
    teller.plan("topics delete doomed --yes --reason 'no longer needed'")
    look_at_topic(teller, "quiet")


def _messages(teller: Teller) -> None:
    teller.do("produce orders -m plain")
    teller.do(
        "produce orders -m one -m two -k key -p a=b -p c=d --event-time 2024-01-01T00:00:00Z --print-ids"
    )
    teller.do("produce orders --null -k gone", output="ndjson")
    teller.do("produce orders --producer loader --sequence-id 7", b"first\nsecond\nthird\n")
    teller.do("produce orders --producer loader --sequence-id 8 --batch 2", b"second\nthird\nfourth\nfifth\n")
    rows = [
        {"value": "as json", "key": "k", "properties": {"p": "q"}, "eventTimeMs": 5},
        {"value": None, "key": "tombstone"},
        {"valueBase64": "/wD+", "keyBase64": "/w=="},
    ]
    teller.do("produce orders --input ndjson", "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    teller.do("produce orders --input raw", b"\xff\x00 raw")
    teller.do("produce payments --input csv", b"key,value\nk1,v1\nk2,v2\n", output="ndjson")
    teller.do("produce payments --atomic", b"a\nb\nc\n")
    teller.do("produce payments --input ndjson --on-error skip", b'{"value":"good"}\nnonsense\n')
    teller.do("produce made --create -m x", output="name")
    teller.do("produce payments --quiet", b"quiet\n")


def _exclusive(teller: Teller) -> None:
    teller.do("produce quiet --access-mode Exclusive -m x --producer owner")
    teller.do("produce quiet --access-mode ExclusiveWithFencing -m y --epoch 1")
    teller.do("produce quiet --access-mode WaitForExclusive -m z --timeout 1s")
    teller.look("producers show quiet", "producers show quiet -n 1")


def _reads(teller: Teller) -> None:
    teller.look(
        "topics peek orders --from 1:2 -n 2",
        "topics log orders --range 1:1..1:3",
        "topics peek orders --from @2024-01-01T12:00:00Z -n 2",
        "topics peek orders --from latest",
        "consume orders -n 3",
        "consume orders --from 1:1 --to 1:3",
        "consume payments --isolation-level read-uncommitted",
    )
    teller.do("topics peek orders -n 2", output="value")
    teller.do("consume quiet -n 1 --timeout 2s", output="value")
    teller.do("consume quiet -n 9 --timeout 2s", output="ndjson")
