"""Every operation that changes a store, as a command line, and the store that they are tried on.

`observe` is the store as its users see it, without times and names of processes: the promise of an operation is stated in
it. Killed or refused at any moment, the store is observed as before the operation or as after it; acknowledged, as after
it; and a second try leads to where one that was not disturbed leads.
"""

from __future__ import annotations

import gzip
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage import EARLIEST, Store, SubscriptionType, TransactionState
from storage.errors import CorruptStore, TxnctlError
from storage.subscription import redrive, subscription_purge
from storage.table import catalogue as tables, retention
from storage.topic import catalogue as topics
from tests.format import small_store
from tests.row_json import row_json
from txnctl.cli.error_report import report
from txnctl.cli.main import main

MESSAGES: Final = 23
TRIMMED: Final = "forgetful"
_SUBSCRIPTION_COUNTS: Final = (
    "type",
    "onOpen",
    "visible",
    "blocked",
    "uncommitted",
    "pending",
    "deadLetterTopic",
)

_OLD: Final = gzip.decompress(Path(small_store.__file__).with_name("store-1.mdb.gz").read_bytes())
_SETTINGS: Final = ("retentionTimeMs", "retentionBytes", "tableRetentionMs", "ttlMs", "expireAfterMs")


class Operation(NamedTuple):
    """A command line, or a function of this module that is called with the store.

    Attributes:
        name: unique.
        words: `api NAME` is the function. In others `{store}` is the store, `{other}` a path beside it, `{empty}` an empty directory, `{old}` a store of format 1, `{txn}` the open transaction of the store.
        input: of the command.
        is_in_steps: it makes several commits, each of which may be the last one of a killed run.
        converges: whether one more run after that leads where an undisturbed one leads.
        is_followed: after its change it makes another commit, as a consumer that leaves; an error of that may come later.
        changes: whether it changes a store.
    """

    name: str
    words: str
    input: bytes = b""
    is_in_steps: bool = False
    converges: bool = True
    is_followed: bool = False
    changes: bool = True

    def command(self, place: str) -> list[str]:
        """The words of the command below a directory."""
        places = {name: os.path.join(place, name) for name in ("store", "other", "empty", "old")}
        words = [word.format(**places, txn=transaction(place)) for word in self.words.split()]
        has_store = self.words.startswith(("store init", "store restore", "store upgrade"))
        return words if has_store else [*words, "--store", places["store"]]


OPERATIONS: Final = (
    Operation("init", "store init {other} -o json"),
    Operation("init in a directory", "store init {empty} -o json"),
    Operation("upgrade", "store upgrade --yes -o json --store {old}"),
    Operation("settle", "pipeline settle requests --table accounts --once --engine local -o json", is_in_steps=True),
    Operation("limit the age", "topics config doomed --ttl 1h --yes -o json"),
    Operation("bound subscriptions", "store config expire-after 30d --yes -o json"),
    Operation("give back", "subscriptions nack orders billing 1:1 --yes -o json"),
    Operation("skip open ones", "subscriptions update orders billing --on-open skip --yes -o json"),
    Operation("evict", "subscriptions evict orders billing --yes --reason faults -o json"),
    Operation("changes", "tables changes accounts -o json", changes=False),
    Operation("export a table", "tables export accounts", changes=False),
    Operation("read compacted", "consume letters --read-compacted -o ndjson", changes=False),
    Operation("create a topic", "topics create fresh -o json"),
    Operation("delete a topic", "topics delete doomed --yes --force -o json", is_in_steps=True),
    Operation("configure a topic", "topics config orders --retention-time 7d --yes -o json"),
    Operation("trim", "topics trim forgetful --yes -o json", is_in_steps=True),
    Operation("truncate", "topics truncate doomed --yes --force -o json", is_in_steps=True),
    Operation("compact a topic", "topics compact letters --yes -o json", is_in_steps=True),
    Operation("produce late", "produce orders -m late --deliver-after 1h -o json"),
    Operation("produce one", "produce orders -m one -o json"),
    Operation("produce once", "produce orders -m one --producer loader --sequence-id 7 -o json"),
    Operation("produce a batch", "produce orders -o json", b"".join(b"line %d\n" % n for n in range(300))),
    Operation("produce a transaction", "produce orders --atomic -o json", b"a\nb\nc\n"),
    Operation("produce in a transaction", "produce orders --txn {txn} -m within -o json"),
    Operation("create on the way", "produce made-late --create -m first -o json"),
    Operation("consume", "consume orders -s billing -n 3 -o ndjson", is_in_steps=True, converges=False),
    Operation("read", "consume orders -o ndjson", changes=False),
    Operation("acknowledge", "subscriptions ack orders billing 1:3 --yes -o json"),
    Operation("subscribe", "subscriptions create orders fresh --from earliest -o json"),
    Operation("seek", "subscriptions seek orders billing earliest --yes -o json"),
    Operation("skip", "subscriptions skip orders billing 2 --yes -o json"),
    Operation("clear a backlog", "subscriptions clear-backlog orders billing --yes -o json"),
    Operation("redrive", "subscriptions redrive letters hospital --yes -o json", is_in_steps=True),
    Operation("unsubscribe", "subscriptions delete orders audit --yes -o json"),
    Operation("begin", "transactions begin -o json"),
    Operation("commit", "transactions commit {txn} -o json"),
    Operation("abort", "transactions abort {txn} --force --yes --reason faults -o json"),
    Operation("abort and fence", "transactions abort {txn} --fence --force --yes --reason faults -o json"),
    Operation("reap", "transactions reap --yes -o json"),
    Operation("open a session", "producers open orders --access-mode Exclusive --lease 1h -o json"),
    Operation("fence", "producers fence owned --yes --reason faults -o json"),
    Operation("create a table", "tables create fresh -o json"),
    Operation("put", "tables put accounts B1 900 -o json"),
    Operation("transfer", "api transfer", is_followed=True),
    Operation("many ends in one flush", "api group", is_in_steps=True),
    Operation("send without waiting", "api send_async"),
    Operation("remove a row", "tables rm accounts B3 -o json"),
    Operation("import", "tables import accounts -o json", b'{"key":"C1","value":"1"}\n{"key":"C2","value":"2"}\n'),
    Operation("delete a table", "tables delete scrap --yes --force -o json", is_in_steps=True),
    Operation("configure the store", "store config retention-time 30d --yes -o json"),
    Operation("gc", "store gc --yes -o json", is_in_steps=True),
    Operation("backup", "store backup {other} -o json"),
    Operation("restore", "store restore {store}.backup --to {other} --yes -o json"),
    Operation("compact", "store compact --yes -o json"),
    Operation("compact to another disk", "store compact --to {other} --yes -o json"),
    Operation("verify", "api verify", changes=False),
    Operation("status", "status -o json", changes=False),
    Operation("doctor", "doctor -o json", changes=False),
    Operation("topic stats", "topics stats orders -o json", changes=False),
    Operation("lag", "subscriptions lag orders -o json", changes=False),
    Operation("scan", "tables scan accounts -o json", changes=False),
)  # fmt: skip


def shorten_steps() -> None:
    """Let what is done in steps need several of them."""
    topics.PURGE_STEP_RECORDS = subscription_purge.PURGE_STEP_RECORDS = 4
    tables.GC_STEP_RECORDS = 4
    retention.GC_STEP_RECORDS = 20
    redrive.REDRIVE_STEP_MESSAGES = 2


def build(place: str) -> None:
    """Build the store that operations are tried on, and its backup, below a directory."""
    path = os.path.join(place, "store")
    Store.create(path)
    with Store.open(path, program="prepared") as store:
        for name in ("orders", "forgetful", "doomed", "letters", "owned"):
            store.create_topic(name, ledger_entries_max=5)
            with store.create_producer(name) as producer:
                for number in range(MESSAGES):
                    producer.send(b"%s %d" % (name.encode(), number), key=f"k{number % 3}")
        store.create_topic("requests")
        with store.create_producer("requests") as producer:
            for number in range(MESSAGES):
                producer.send(b'{"delta": "-20.50"}', key=f"B{number % 5}")
        store.create_table("accounts")
        store.create_table("scrap")
        for table in ("accounts", "scrap"):
            for number in range(12):
                store.table(table).put(b"B%d" % number, b"100")
        _subscribe(store)
        open_ = store.begin_transaction(timeout=86_400)
        with open(os.path.join(place, "transaction"), "w") as file:
            file.write(str(open_))
        store.create_producer("orders", connected=False).send(b"uncommitted", txn=open_)
        store.table("accounts").put(b"B9", b"uncommitted", txn=open_)
        store.open_session("owned", access_mode="Exclusive", lease=86_400)
    with Store.open(path) as store:
        store.maintenance.backup_store(path + ".backup")
    os.mkdir(os.path.join(place, "empty"))
    small_store.unpacked(1, Path(place, "old"))
    Path(place, "old.note").write_bytes(pickle.dumps(_observed_old(os.path.join(place, "old"))))


def _subscribe(store: Store) -> None:
    create = store.admin.subscriptions.create_subscription
    create("orders", "billing", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST)
    create("orders", "audit", initial_position=EARLIEST)
    create("forgetful", "reader", initial_position=EARLIEST)
    create("doomed", "reader", initial_position=EARLIEST)
    create(
        "letters", "hospital", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST,
        dead_letter_topic="grave", max_redeliver_count=0,
    )  # fmt: skip
    with store.subscribe("orders", "billing") as consumer:
        consumer.acknowledge(list(consumer.receive_batch(4, timeout=0))[::2])
    with store.subscribe("forgetful", "reader") as consumer:
        consumer.acknowledge_cumulative(list(consumer.receive_batch(MESSAGES, timeout=0))[-4])
    store.admin.topics.set_retention("forgetful", time_ms=0)
    with store.subscribe("letters", "hospital", receiver_queue_size=6) as consumer:
        dead = [message.message_id for message in consumer.receive_batch(6, timeout=0)]
        store.admin.acknowledgements.negative_acknowledge_messages("letters", "hospital", dead, delay=0)
        consumer.receive_batch(1, timeout=0)


def transaction(place: str) -> str:
    """The id of the open transaction of the prepared store."""
    with open(os.path.join(place, "transaction")) as file:
        return file.read()


def observe(place: str) -> dict[str, Any]:
    """The stores below a directory as their users see them.

    Raises:
        AssertionError: `verify --full` finds something.
    """
    seen: dict[str, Any] = {"store": _observed(os.path.join(place, "store"), transaction(place))}
    other = os.path.join(place, "other")
    if os.path.lexists(other):
        seen["other"] = _observed(other, transaction(place))
    if os.path.lexists(os.path.join(place, "empty", "data.mdb")):
        seen["empty"] = _observed(os.path.join(place, "empty"), transaction(place))
    seen["old"] = _observed_old(os.path.join(place, "old"))
    return seen


def _observed_old(path: str) -> dict[str, Any]:
    """A store of format 1, or upgraded from there: its format, messages and rows; noted where nothing was changed."""
    note = f"{path}.note"
    if os.path.exists(note) and Path(path, "data.mdb").read_bytes() == _OLD:
        noted: dict[str, Any] = pickle.loads(Path(note).read_bytes())
        return noted
    with Store.open(path, read_only=True) as store:
        _verify(store)
        names = [row["table"] for row in row_json(store.reports.list_tables())]
        return {
            "format": row_json(store.reports.store_info())["format"],
            "topics": {topic: [message.value for message in store.reader(topic)] for topic in store.topics()},
            "tables": {name: [(row.key, row.value) for row in store.table(name).scan()] for name in names},
        }


def _observed(path: str, txn: str) -> dict[str, Any]:
    with Store.open(path, read_only=True) as store:
        _verify(store)
    with Store.open(path) as store:
        store.connection.environment.writer.trims_on_the_way = False
        store.connection.write(lambda _: None)  # reaps what a killed process left
        seen: dict[str, Any] = {"topics": {}, "tables": {}, "subscriptions": {}}
        for topic in store.topics():
            messages = store.reader(topic, isolation_level="READ_UNCOMMITTED")
            seen["topics"][topic] = [
                (message.value, message.txn_state)
                for message in messages
                if message.txn_state is not TransactionState.ABORTED
            ]
        for row in row_json(store.reports.list_subscriptions()):
            stats = row_json(store.reports.subscription_stats(row["topic"], row["subscription"]))
            counts = {name: stats[name] for name in _SUBSCRIPTION_COUNTS}
            seen["subscriptions"][f"{row['topic']} {row['subscription']}"] = counts
        for row in row_json(store.reports.list_tables()):
            name = row["table"]
            seen["tables"][name] = {each.key: each.value for each in store.table(name).scan()}
        if store.has_topic("letters"):
            letters = store.reader("letters", read_compacted=True)
            seen["compacted"] = [(message.key, message.value) for message in letters]
        seen["open"] = sum(not row["attached"] for row in row_json(store.reports.list_transactions()))
        seen["state"] = _state(store, txn)
        info = row_json(store.reports.store_info())
        seen["settings"] = [info[name] for name in _SETTINGS]
        seen["limits"] = {topic: repr(store.reports.topic_retention(topic).own) for topic in store.topics()}
        seen["leased"] = sum(row["leaseMs"] is not None for row in row_json(store.reports.list_producers()))
        _verify(store)
    return seen


def _state(store: Store, txn: str) -> str | None:
    try:
        return str(row_json(store.reports.show_transaction(txn))["state"])
    except TxnctlError:
        return None


def _verify(store: Store) -> None:
    problems = [problem.message for problem in store.maintenance.verify_store(full=True)]
    assert problems == [], problems


def transfer(store: Store) -> None:
    """A transaction with rows, messages and an acknowledgement; the number of the next one is put too."""
    with store.subscribe("orders", "billing") as consumer, store.transaction() as txn:
        message = consumer.receive(timeout=0)
        for key in (b"B1", b"B2"):
            store.table("accounts").put(key, store.table("accounts").get(key, txn=txn) + b"+", txn=txn)
        store.create_producer("letters").send(b"transferred", txn=txn)
        consumer.acknowledge(message, txn=txn)


def group(store: Store) -> None:
    """Two transactions and a send in one flush; a call that fails in the block leaves the ends before it."""
    accounts, letters = store.table("accounts"), store.create_producer("letters", connected=False)
    with store.group():
        for key in (b"B1", b"B2"):
            with store.transaction() as txn:
                accounts.put(key, b"grouped", txn=txn)
                letters.send(key, txn=txn)
        letters.send(b"grouped")


def send_async(store: Store) -> None:
    """A message by its future."""
    letters = store.create_producer("letters", producer_name="loader", connected=False)
    letters.send_async(b"sent without waiting", sequence_id=1).result()


def verify(store: Store) -> None:
    """Check the whole store.

    Raises:
        CorruptStore: something is found.
    """
    for problem in store.maintenance.verify_store(full=True):
        raise CorruptStore(problem.message)


API: Final = {"transfer": transfer, "group": group, "send_async": send_async, "verify": verify}


def _called(operation: Operation, place: str) -> int:
    """Call a function as a command would: an error of ours is a line on standard error, and an exit code."""
    try:
        with Store.open(os.path.join(place, "store")) as store:
            API[operation.words.removeprefix("api ")](store)
    except Exception as error:  # noqa: BLE001 - as the command does
        return report(error, ["-o", "json"])
    print("done")
    return 0


def run(operation: Operation, place: str, arm: Callable[[], object] = lambda: None) -> int:
    """Run an operation in this process, its standard streams files of the directory; return the exit code.

    Args:
        arm: called when all is ready.
    """
    with open(os.path.join(place, "input"), "wb") as file:
        file.write(operation.input)
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for target, (name, flags) in enumerate(
        (("input", os.O_RDONLY), ("output", written), ("errors", written))
    ):
        descriptor = os.open(os.path.join(place, name), flags, 0o600)
        os.dup2(descriptor, target)
        os.close(descriptor)
    is_api = operation.words.startswith("api ")
    words = [] if is_api else operation.command(place)
    arm()
    status = _called(operation, place) if is_api else main(words)
    sys.stdout.flush()
    return status
