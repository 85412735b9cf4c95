"""Subscriptions of every type and level, their cursors moved in every way, consumers that come, hold and die."""

from __future__ import annotations

from tests.golden.parts.bank import look_around
from tests.golden.teller import Teller

_SHARED = "events shared"


def play(teller: Teller) -> None:
    """Work on the topics `events` and `keyed`."""
    teller.do("topics create events --ledger-entries 10")
    _create(teller)
    teller.do("produce events", b"".join(b"event %d\n" % number for number in range(12)))
    for number in range(8):
        teller.do(f"produce keyed --create -m 'value {number}' -k key-{number % 3}")
    _acknowledge(teller)
    _pending(teller)
    _consume(teller)
    _attached(teller)
    _evicted(teller)
    _skipping(teller)
    _move(teller)
    _change(teller)
    look_around(teller)
    _delete(teller)


def look_at_subscription(teller: Teller, names: str) -> None:
    """Run every command that reads one subscription; `names` holds the names of topic and subscription."""
    for words in ("show", "stats", "lag", "pending"):
        teller.look(f"subscriptions {words} {names}")
    topic, name = names.split()
    teller.look(f"topics peek {topic} -s {name} -n 3", f"topics last-message-id {topic} -s {name}")


def _create(teller: Teller) -> None:
    for kind in ("exclusive", "failover", "shared", "key-shared"):
        teller.do(f"subscriptions create events {kind} --subscription-type {kind} --from earliest")
    teller.do("subscriptions create events dirty --isolation-level read-uncommitted --from earliest")
    teller.do(
        "subscriptions create events letters --subscription-type shared --from earliest"
        " --dead-letter-topic dead --max-redeliver-count 1"
    )
    teller.do("subscriptions create events late", output="ndjson")
    teller.look("subscriptions list events", "subscriptions list")


def _acknowledge(teller: Teller) -> None:
    teller.do(f"subscriptions ack {_SHARED} 9:2")
    teller.do(f"subscriptions ack {_SHARED} 1:0:3 1:0:5")
    teller.do("consume events -s shared -n 2 --ack none")
    look_at_subscription(teller, _SHARED)
    teller.plan(f"subscriptions ack {_SHARED} 1:0:0 1:0:2 --yes")
    teller.do("subscriptions ack events exclusive 1:0:4 --cumulative --yes --reason 'by hand'")
    look_at_subscription(teller, _SHARED)
    look_at_subscription(teller, "events exclusive")
    teller.look("topics stats-internal events", "topics positions events")


def _pending(teller: Teller) -> None:
    txn = teller.do("transactions begin --timeout 10h")["txnId"]
    other = teller.do("transactions begin --timeout 10h")["txnId"]
    teller.do(f"subscriptions ack {_SHARED} 1:0:6 --txn {txn}")
    teller.do(f"subscriptions ack events exclusive 1:0:6 --cumulative --txn {txn}")
    teller.do(f"subscriptions ack {_SHARED} 1:0:6 --txn {other}")
    teller.do(f"consume events -s dirty -n 3 --txn {other}", output="ndjson")
    teller.wait(120)
    for names in (_SHARED, "events exclusive", "events dirty"):
        look_at_subscription(teller, names)
    teller.look("topics stats events", "topics stats-internal events", "transactions timeline events")
    teller.look(f"transactions show {txn}", f"transactions explain {other}", "doctor", "status")
    teller.do(f"subscriptions ack {_SHARED} 1:0:6 --yes")
    teller.plan(f"subscriptions ack {_SHARED} 1:0:6 --yes --force")
    teller.do(f"transactions show {txn}")
    teller.plan("subscriptions seek events dirty earliest --yes --force --reason again")
    teller.do(f"transactions show {other}")


def _consume(teller: Teller) -> None:
    teller.do("consume events -s failover -n 2 --consumer left")
    teller.do("consume events -s made --subscription-type shared --from earliest -n 1", output="ndjson")
    teller.do("consume keyed -s keys --subscription-type key-shared --from earliest -n 3 --ack none")
    teller.plan("subscriptions nack keyed keys 1:0 --delay 1s")
    for _ in range(4):
        teller.do(
            "consume events -s letters -n 1 --exec false --on-error retry --retry-delay 1s --timeout 3s"
        )
        teller.wait(5)
    teller.do("consume events -s letters -n 1 --exec false")
    look_at_subscription(teller, "events letters")
    teller.plan("subscriptions redrive events letters -n 1")
    teller.look("topics list", "subscriptions list keyed")


def _attached(teller: Teller) -> None:
    first = teller.start("consume events -s key-shared --follow --ack none --consumer one -o ndjson")
    teller.until("subscriptions show events key-shared", lambda row: row["unackedMessages"] == 12)
    second = teller.start("consume keyed -s keys --follow --consumer two -o ndjson")
    teller.until(
        "subscriptions show keyed keys", lambda row: len(row["consumers"]) == 1 and not row["visible"]
    )
    look_at_subscription(teller, "events key-shared")
    look_at_subscription(teller, "keyed keys")
    teller.look("status")
    teller.do("topics delete events --yes")
    teller.do("subscriptions update events key-shared --subscription-type exclusive --yes")
    teller.do("consume events -s key-shared --subscription-type exclusive -n 1")
    teller.do("subscriptions nack events key-shared 1:0:3 --yes --dry-run")
    teller.do("subscriptions evict keyed keys nobody --yes")
    teller.plan("subscriptions evict keyed keys two --yes")
    teller.ended(second)
    first.kill()
    look_at_subscription(teller, "events key-shared")
    teller.plan("subscriptions evict events key-shared --yes")
    teller.look("subscriptions list events")


def _evicted(teller: Teller) -> None:
    teller.do("subscriptions create events brief --from earliest")
    child = teller.start("consume events -s brief --follow --ack none --consumer last -o ndjson")
    teller.until("subscriptions show events brief", lambda row: row["unackedMessages"] > 0)
    teller.do("subscriptions delete events brief --yes")
    teller.plan("subscriptions delete events brief --yes --force")
    teller.ended(child)


def _skipping(teller: Teller) -> None:
    teller.do(
        "subscriptions create keyed passing --on-open skip --subscription-type key-shared --from earliest"
    )
    txn = teller.do("transactions begin --timeout 10h")["txnId"]
    teller.do(f"produce keyed -m open -k key-0 --txn {txn}")
    teller.do("produce keyed -m behind -k key-0")
    teller.do("produce keyed -m beside -k key-9")
    teller.do("consume keyed -s passing -n 20 --timeout 1s", output="ndjson")
    look_at_subscription(teller, "keyed passing")
    teller.look("topics stats keyed", "transactions blocked keyed", "transactions timeline keyed")
    teller.do(f"transactions commit {txn}")
    look_at_subscription(teller, "keyed passing")


def _move(teller: Teller) -> None:
    teller.plan("subscriptions seek events exclusive 1:0:2 --yes")
    teller.plan("subscriptions skip events exclusive 3 --yes")
    teller.plan("subscriptions skip events dirty 2 --beyond-max-read --yes")
    teller.plan("subscriptions clear-backlog events failover --yes")
    teller.do("subscriptions clear-backlog events dirty --beyond-max-read --yes", output="ndjson")
    look_at_subscription(teller, "events failover")


def _change(teller: Teller) -> None:
    teller.plan("subscriptions update events exclusive --subscription-type shared --yes")
    teller.plan("subscriptions update events late --isolation-level read-uncommitted --yes")
    teller.plan("subscriptions update events shared --on-open skip --max-redeliver-count 3 --yes")
    teller.do("subscriptions update events late --yes")
    look_at_subscription(teller, "events late")


def _delete(teller: Teller) -> None:
    txn = teller.do("transactions begin --timeout 10h")["txnId"]
    teller.do(f"subscriptions ack events shared 1:0:9 --txn {txn}")
    teller.do("subscriptions delete events shared --yes")
    teller.plan("subscriptions delete events shared --force --yes --reason gone")
    teller.do("subscriptions delete events late --yes", output="ndjson")
    teller.plan("topics delete keyed --yes --force")
