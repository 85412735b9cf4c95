"""Steps that the tests of both engines share: random requests, a settlement by either, and all that it leaves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from storage import Store
from txnctl.pipelines.hellers import format_hellers
from txnctl.pipelines.local_settle import parse_options, settle_backlog
from txnctl.pipelines.request import KEYED, RequestForm
from txnctl.pipelines.settler import BatchSettler, SettleOptions
from txnctl.spark.sink.progress import SINKS

TOPIC = "persistent://public/default/requests"
FORMS = (KEYED, RequestForm("sum", debit="from", credit="to"), RequestForm("sum", legs="legs"))
ACCOUNTS = st.sampled_from(["B1", "B2", "bank:IJ", "é", " ", "B" * 400])
AMOUNTS = st.integers(-(10**12), 10**12).map(format_hellers) | st.integers(-999, 999)


class Sent(NamedTuple):
    """A message: with several, one transaction has sent them. An open one is in the way of all behind it."""

    messages: list[tuple[bytes | None, bytes | None]]
    outcome: str


def requests(form: RequestForm) -> st.SearchStrategy[tuple[bytes | None, bytes | None]]:
    """Messages of a form; some are no requests."""
    odd = st.sampled_from(
        [None, b"", b"{}", b"[]", b"no JSON", b'{"delta": "1.005"}', b'{"legs": []}', b"\xff"]
    )
    if form.legs is not None:
        leg = st.fixed_dictionaries({"account": ACCOUNTS, "sum": AMOUNTS})
        value = st.fixed_dictionaries({"legs": st.lists(leg, max_size=4)})
    elif form.debit is not None:
        value = st.fixed_dictionaries({"from": ACCOUNTS, "to": ACCOUNTS | st.none(), "sum": AMOUNTS})
    else:
        value = st.fixed_dictionaries({"delta": AMOUNTS})
    written = value.map(lambda fields: json.dumps(fields).encode())
    keys = ACCOUNTS.map(str.encode) | st.sampled_from([None, b"\xff"])
    good = st.tuples(ACCOUNTS.map(str.encode), written)
    return st.one_of(good, good, good, good, st.tuples(keys, written | odd))


def backlogs(form: RequestForm, most: int) -> st.SearchStrategy[list[Sent]]:
    """What was sent to a topic: messages alone, and transactions that were committed, aborted or are open."""
    message = requests(form)
    alone = st.builds(Sent, st.lists(message, min_size=1, max_size=3), st.just("alone"))
    together = st.builds(
        Sent, st.lists(message, min_size=2, max_size=5), st.sampled_from(["commit", "commit", "abort"])
    )
    left_open = st.builds(Sent, st.lists(message, min_size=1, max_size=2), st.just("open"))
    body = st.lists(alone | together, min_size=most // 2, max_size=most)
    return st.tuples(body, st.lists(left_open, max_size=1), st.lists(alone, max_size=2)).map(
        lambda parts: [*parts[0], *parts[1], *parts[2]]
    )


def send(store: Store, backlog: list[Sent]) -> None:
    """Send a backlog; the messages of a transaction come in turns with those behind them."""
    ended: list[tuple[Any, str]] = []
    for number, sent in enumerate(backlog):
        txn = None if sent.outcome == "alone" else store.begin_transaction(timeout=3600)
        with store.create_producer("requests", connected=False) as producer:
            producer.send_batch(
                [value for _, value in sent.messages], keys=[key for key, _ in sent.messages], txn=txn
            )
        if txn is not None and sent.outcome != "open":
            ended.append((txn, sent.outcome))
        if ended and number % 3:
            end(store, *ended.pop())
    for each in ended:
        end(store, *each)


def end(store: Store, txn: Any, outcome: str) -> None:
    """End a transaction."""
    if outcome == "commit":
        store.commit_transaction(txn)
    else:
        store.admin.transactions.abort_transaction(txn, reason="recalled")


def copied(place: Path, name: str) -> str:
    """A copy of a store that nobody has open."""
    target = place.with_name(name)
    shutil.copytree(place, target)
    return str(target)


def options(path: str, max_messages: int) -> dict[str, str]:
    """Of the source, as the command gives them."""
    return {
        "path": path,
        "topic": "requests",
        "subscription": "settle",
        "startingPosition": "earliest",
        "maxMessagesPerTrigger": str(max_messages),
    }


def settle_locally(path: str, settle_options: SettleOptions, max_messages: int) -> BatchSettler:
    """Settle what is there, without Spark."""
    with Store.open(path) as store:
        settler = BatchSettler(store, TOPIC, "accounts", settle_options)
        settle_backlog(settler, store, parse_options(options(path, max_messages)))
        return settler


class Left(NamedTuple):
    """All that a settlement leaves in a store: balances by version, the note, and the subscription."""

    balances: dict[bytes, bytes | None]
    by_version: list[dict[bytes, bytes | None]]
    note: dict[str, Any]
    cursor: str
    backlog: int


def left(path: str) -> Left:
    """Read what a settlement has left."""
    with Store.open(path, read_only=True) as store:
        accounts = store.table("accounts")
        versions: dict[int, dict[bytes, bytes | None]] = {}
        for row in accounts.scan():
            for version in accounts.versions(row.key):
                versions.setdefault(version.version_ns, {})[row.key] = version.value
        note = store.table(SINKS).get(f"settle {TOPIC} accounts".encode()) if store.has_table(SINKS) else None
        stats = store.reports.subscription_stats("requests", "settle").row.stats
        return Left(
            {row.key: row.value for row in accounts.scan()},
            [versions[version] for version in sorted(versions)],
            json.loads(note or b"{}"),
            str(stats.mark_delete_position),
            stats.msg_backlog,
        )
