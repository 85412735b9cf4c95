"""The process that the crash sweep kills: a bit of everything that changes a store, noted before and after.

    python -m tests.processes.crash_workload STORE JOURNAL rounds POINT N     killed when POINT is reached the N-th time
    python -m tests.processes.crash_workload STORE JOURNAL rounds             until it is killed from outside
    python -m tests.processes.crash_workload STORE JOURNAL drain              consumes everything that is left

Whatever the last run left, the next one goes on with: it creates what is missing, sends again what it does not know
to be stored, and ends its detached transaction. `crash_model` says what must then be found.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from storage import (
    EARLIEST,
    IsolationLevel,
    Producer,
    Store,
    SubscriptionType,
    Transaction,
    TransactionState,
    TxnID,
    faults,
)
from storage.client.consumer import Consumer
from storage.errors import ProducerFenced
from storage.subscription import subscription_purge
from storage.table import catalogue as tables, retention
from storage.topic import catalogue as topics
from storage.topic.message import Message
from storage.txn import compaction
from tests.processes import places
from tests.processes.journal import Journal
from tests.processes.parent import say
from tests.row_json import row_json

ROUNDS_MAX = 12
"""A point that so many rounds do not reach often enough is not reached at all."""

compaction.COMPACTION_STEP_MESSAGES = 2
"""Small steps, so that a kill meets a compaction in the middle."""

TOPICS = {"orders": 5, "audit": 3, "throne": 4}
"""Their ledgers roll after so many entries."""

SUBSCRIPTIONS = {
    "ledger": ("orders", SubscriptionType.EXCLUSIVE, IsolationLevel.READ_COMMITTED),
    "workers": ("orders", SubscriptionType.SHARED, IsolationLevel.READ_COMMITTED),
    "keys": ("orders", SubscriptionType.KEY_SHARED, IsolationLevel.READ_UNCOMMITTED),
    "standby": ("orders", SubscriptionType.FAILOVER, IsolationLevel.READ_COMMITTED),
    "hurried": ("orders", SubscriptionType.KEY_SHARED, IsolationLevel.READ_COMMITTED),
    "watch": ("audit", SubscriptionType.EXCLUSIVE, IsolationLevel.READ_UNCOMMITTED),
    "rewound": ("audit", SubscriptionType.EXCLUSIVE, IsolationLevel.READ_COMMITTED),
}
SKIPPING = {"hurried"}
"""Those that pass over what is open."""

CUMULATIVE = {"ledger", "standby", "rewound"}
THRONE = "throne"
"""The topic that one owner after the other takes over."""

GRAVE = "grave"
DOOMED = "doomed"
FORGETFUL = "forgetful"
BALANCES = "balances"
"""A topic that is compacted and trimmed: key n % 4 of the n-th message, whose value is n."""

BOOKS = "books"
SCRAP = "scrap"
CROWD = 70
"""Keys of a transaction whose intents are too many to be finalised with its end."""


class Workload:
    """One run."""

    def __init__(self, path: str, journal: Journal) -> None:
        self.path = path
        self.journal = journal
        self.journal.note("is", "started", pid=os.getpid())
        if not places.is_there(places.name_of(path)):
            with journal.attempt("create"):
                Store.create(path)
        self.store = Store.open(path, lock_timeout=30)
        self.consumers: dict[str, Consumer] = {}

    # What every run begins with

    def recover(self) -> None:
        """Set up what is missing, and end or repeat what the last run did not know to be done."""
        for name, entries in TOPICS.items():
            if not self.store.has_topic(name):
                self.store.create_topic(name, ledger_entries_max=entries)
        has = {row["subscription"] for row in row_json(self.store.reports.list_subscriptions())}
        for name, (of, type_, level) in SUBSCRIPTIONS.items():
            if name not in has:
                self.store.admin.subscriptions.create_subscription(
                    of, name, subscription_type=type_, subscription_isolation_level=level,
                    on_open="skip" if name in SKIPPING else None, initial_position=EARLIEST,
                    dead_letter_topic=GRAVE if name == "workers" else None,
                    max_redeliver_count=1 if name == "workers" else None,
                )  # fmt: skip
        if not self.store.has_table(BOOKS):
            self.store.create_table(BOOKS)
        if self.store.has_table(SCRAP):
            self.store.admin.tables.delete_table(SCRAP, force=True)
        self.commit_detached()
        self.send_again()
        self.come_back()
        if self.store.has_topic(DOOMED):
            self.delete_doomed()

    def commit_detached(self) -> None:
        """Commit the detached transactions of this journal, whichever run began them."""
        ended = {line["txn"] for line in self.journal.of("did", "commit")}
        for line in self.journal.of("did", "begin"):
            if line["detached"] and line["txn"] not in ended:
                with self.journal.attempt("commit", txn=line["txn"]):
                    self.store.commit_transaction(line["txn"])

    def send_again(self) -> None:
        """The last messages of the named producer, under the same sequence ids."""
        tried = self.journal.of("try", "send")
        named = [line for line in tried if line["sequence_ids"] is not None]
        if named:
            self.send_named(named[-1]["values"], named[-1]["sequence_ids"])

    def come_back(self) -> None:
        """Whoever knew that it owned the throne goes on under its epoch; what was only tried is taken over."""
        reigns = [line for line in self.journal.lines if line["kind"] in ("own", "abdicate")]
        if not reigns or (reigns[-1]["kind"] == "abdicate" and reigns[-1]["event"] == "did"):
            return
        last = reigns[-1]
        if last["event"] == "try":
            owner = self.own("ExclusiveWithFencing")
        elif last["leased"]:
            owner = self.store.session_producer(THRONE, last["token"])
        else:
            owner = self.store.create_producer(THRONE, access_mode="Exclusive", resume=last["token"])
        assert last["event"] == "try" or owner.topic_epoch == last["epoch"], "nobody else came, so it goes on"
        self.send_as(owner, 1)
        self.abdicate(owner)

    # Steps

    def send(self, of: str, count: int, txn: str | None = None) -> None:
        """Send fresh values as one batch."""
        number = len(self.journal.lines)
        values = [f"{number}/{index}" for index in range(count)]
        with self.journal.attempt("send", topic=of, values=values, txn=txn, sequence_ids=None) as sent:
            keys = [f"k{(number + index) % 3}" for index in range(count)]
            receipt = self.store.create_producer(of, connected=False).send_batch(
                [v.encode() for v in values], keys=keys, txn=txn
            )
            sent.result["ids"] = [str(each) for each in receipt]
        assert receipt.count == count

    def own(self, mode: str, spares: str | None = None, leased: bool = False) -> Producer:
        """Take the throne; the open transactions with messages on it are doomed, but for the one that is spared."""
        before = row_json(self.store.reports.topic_stats(THRONE))["topicEpoch"]
        dooms = [
            row["txnId"]
            for row in row_json(self.store.reports.list_transactions(topic=THRONE))
            if row["txnId"] != spares
        ]
        with self.journal.attempt("own", before=before, dooms=dooms, leased=leased) as owned:
            if leased:
                row = row_json(self.store.open_session(THRONE, access_mode=mode, lease=3600))
                owner = self.store.session_producer(THRONE, row["session"])
            else:
                owner = self.store.create_producer(THRONE, access_mode=mode, txn=spares)
            owned.result.update(epoch=owner.topic_epoch, token=owner.session)
        return owner

    def abdicate(self, owner: Producer) -> None:
        """Leave the throne."""
        assert owner.session is not None
        with self.journal.attempt("abdicate", epoch=owner.topic_epoch):
            self.store.admin.producers.close_session(owner.session)

    def send_as(self, owner: Producer, count: int, txn: str | None = None) -> None:
        """Send fresh values under the epoch of a producer."""
        number, epoch = len(self.journal.lines), owner.topic_epoch
        values = [f"{number}/{index}" for index in range(count)]
        with self.journal.attempt(
            "send", topic=THRONE, values=values, txn=txn, sequence_ids=None, epoch=epoch
        ) as sent:
            receipt = owner.send_batch([v.encode() for v in values], txn=txn)
            sent.result["ids"] = [str(each) for each in receipt]

    def be_refused(self, fenced: Producer) -> None:
        """Who was taken over can publish no more; a transaction that it tries to go on with is aborted."""
        with self.journal.attempt("enlist") as enlisted:
            txn = enlisted.result["txn"] = str(self.store.begin_transaction(timeout=3600))
        for within in (None, txn):
            with self.journal.attempt("refuse", txn=within):
                try:
                    fenced.send(b"never stored", txn=within)
                except ProducerFenced:
                    continue
                raise AssertionError("a fenced producer has published")

    def reign(self) -> None:
        """Three owners, each taken over by the next, and a Shared producer after them."""
        first = self.own("Exclusive")
        self.send_as(first, 1)
        doomed, spared = (str(self.store.begin_transaction(timeout=3600)) for _ in range(2))
        self.send_as(first, 2, doomed)
        self.send_as(first, 1, spared)
        second = self.own("ExclusiveWithFencing", spares=spared)
        self.be_refused(first)
        self.send_as(second, 1, spared)
        with self.journal.attempt("commit", txn=spared):
            self.store.commit_transaction(spared)
        third = self.own("ExclusiveWithFencing", leased=True)
        self.be_refused(second)
        self.send_as(third, 2)
        self.abdicate(third)
        with self.store.create_producer(THRONE) as shared:
            self.send_as(shared, 1)

    def send_named(self, values: list[str], ids: list[int]) -> int:
        """Send under given sequence ids; how many of them were stored now."""
        with self.journal.attempt("send", topic="audit", values=values, txn=None, sequence_ids=ids) as sent:
            producer = self.store.create_producer("audit", producer_name="named", connected=False)
            receipt = producer.send_batch([v.encode() for v in values], sequence_ids=ids)
            if receipt.count:
                sent.result["ids"] = [str(each) for each in receipt]
        assert receipt.count in (0, len(values)), "these ids were sent together, so they are stored together"
        return receipt.count

    def begin(self) -> Transaction:
        """A transaction that dies with this process."""
        with self.journal.attempt("begin", detached=False) as begun:
            txn = self.store.transaction(timeout=300)
            begun.result["txn"] = str(txn.id)
        return txn

    def begin_detached(self) -> TxnID:
        """A transaction that any later run commits."""
        with self.journal.attempt("begin", detached=True) as begun:
            txn = self.store.begin_transaction(timeout=3600)
            begun.result["txn"] = str(txn)
        return txn

    def end(self, txn: Transaction, kind: str) -> None:
        """Commit or abort."""
        with self.journal.attempt(kind, txn=str(txn.id)):
            getattr(txn, kind)()

    def attach(self, name: str) -> Consumer:
        """The consumer of this run on a subscription."""
        if name not in self.consumers:
            self.consumers[name] = self.store.subscribe(SUBSCRIPTIONS[name][0], name, receiver_queue_size=7)
        return self.consumers[name]

    def receive(self, name: str, count: int) -> list[Message]:
        """What comes at once, noted."""
        consumer = self.attach(name)
        found = list(consumer.receive_batch(count, timeout=0))
        if found:
            self.journal.note(
                "is", "received", subscription=name, values=[_text(message) for message in found],
                level=consumer.subscription_isolation_level.value,
            )  # fmt: skip
        return found

    def acknowledge(self, name: str, messages: list[Message], txn: str | None = None) -> None:
        """Acknowledge what was received: cumulatively where the type allows it, else one by one."""
        if not messages:
            return
        up_to = _text(messages[-1]) if name in CUMULATIVE else None
        values = [_text(message) for message in messages]
        with self.journal.attempt("acknowledge", subscription=name, values=values, up_to=up_to, txn=txn):
            if up_to is None:
                self.consumers[name].acknowledge(messages, txn=txn)
            else:
                self.consumers[name].acknowledge_cumulative(messages[-1], txn=txn)

    def change_level(self) -> None:
        """Change the level of `watch`, which nobody is attached to meanwhile."""
        was = self.attach("watch").subscription_isolation_level
        self.consumers.pop("watch").close()
        level = next(each for each in IsolationLevel if each is not was)
        self.store.admin.subscriptions.update_subscription(
            "audit", "watch", subscription_isolation_level=level
        )

    def rewind(self) -> None:
        """Consume `rewound`, and seek back to the beginning."""
        self.acknowledge("rewound", self.receive("rewound", 5))
        with self.journal.attempt("seek", subscription="rewound"):
            self.store.admin.subscriptions.seek_subscription("audit", "rewound", EARLIEST)

    def delete_doomed(self) -> None:
        with self.journal.attempt("delete", topic=DOOMED):
            self.store.admin.topics.delete_topic(DOOMED, force=True)

    def doom(self) -> None:
        """A topic comes and goes, with a subscription and entries for several steps of the purge."""
        self.store.create_topic(DOOMED, ledger_entries_max=2)
        self.send(DOOMED, 1)
        with self.store.subscribe(DOOMED, "mourner", initial_position=EARLIEST) as mourner:
            self.send(DOOMED, 2)
            mourner.acknowledge(mourner.receive(timeout=0))
        for _ in range(2):
            self.send(DOOMED, 1)
        self.delete_doomed()

    def forget(self) -> None:
        """A topic that keeps nothing acknowledged: its messages are numbers, of which trimming loses none."""
        if not self.store.has_topic(FORGETFUL):
            self.store.create_topic(FORGETFUL, ledger_entries_max=2)
        # Without a subscription, a write that comes to this topic on its way trims all of it.
        self.store.subscribe(FORGETFUL, "reader", initial_position=EARLIEST).close()
        self.store.admin.topics.set_retention(FORGETFUL, time_ms=0)
        with self.store.create_producer(FORGETFUL) as producer:
            for _ in range(5):
                stored = self.store.reports.topic_stats(FORGETFUL).counts.msg_in_counter
                producer.send(b"%d" % stored)
        tried, done = (
            [line["up_to"] for line in self.journal.of(event, "forget")] for event in ("try", "did")
        )
        with self.store.subscribe(FORGETFUL, "reader", initial_position=EARLIEST) as reader:
            found = reader.receive_batch(1000, timeout=0)
            numbers = [int(message.value or b"") for message in found]
            assert numbers == list(range(numbers[0], stored + 1)), "nothing is missing in between"
            assert max(done, default=-1) < numbers[0] <= max(tried, default=-1) + 1, "nor before, nor twice"
            with self.journal.attempt("forget", up_to=numbers[3]):
                reader.acknowledge_cumulative(found[3])
        self.store.admin.topics.trim_topic(FORGETFUL)

    def compact(self) -> None:
        """A compacted topic has the newest message of each key, whatever was killed in compaction or trimming."""
        if not self.store.has_topic(BALANCES):
            self.store.create_topic(BALANCES, ledger_entries_max=3)
        # The threshold holds back what is not compacted yet, also before the first compaction.
        self.store.admin.topics.set_compaction(BALANCES, threshold=1 << 40)
        self.store.admin.topics.set_retention(BALANCES, time_ms=0)
        stored = self.store.reports.topic_stats(BALANCES).counts.msg_in_counter
        for _ in range(2):
            self.check_balances(stored)
            with self.store.create_producer(BALANCES) as producer:
                for number in range(stored, stored + 8):
                    producer.send(b"%d" % number, key=b"%d" % (number % 4))
            stored += 8
            self.check_balances(stored)
            self.store.admin.topics.compact_topic(BALANCES)
            self.check_balances(stored)
            self.store.admin.topics.trim_topic(BALANCES)
        self.check_balances(stored)

    def check_balances(self, stored: int) -> None:
        """Every key has its newest message, of `stored` ones ever sent."""
        newest = {b"%d" % (number % 4): b"%d" % number for number in range(stored)}
        found = {message.key: message.value for message in self.store.reader(BALANCES, read_compacted=True)}
        assert found == newest, f"{found} is not {newest}"

    # Tables

    def put(self, count: int, txn: Transaction | TxnID | None = None) -> None:
        """Put fresh keys, each with a store transaction of its own, or with that of its transaction."""
        books = self.store.table(BOOKS)
        for _ in range(count):
            key = str(len(self.journal.lines))
            name = None if txn is None else str(txn.id if isinstance(txn, Transaction) else txn)
            with self.journal.attempt("put", keys=[key], txn=name):
                books.put(key.encode(), key.encode(), txn=txn)

    def transfer(self) -> None:
        """A transaction that begins without a commit: reads, two fresh keys, and one that all of them write."""
        books, number = self.store.table(BOOKS), len(self.journal.lines)
        keys = [f"t{number}/{index}" for index in range(2)]
        with self.journal.attempt("put", keys=keys, txn=None), self.store.transaction() as txn:
            count = int(books.get(b"count", txn=txn) or b"0")
            assert 2 * count == len(list(books.scan(prefix=b"t", txn=txn)))
            for key in keys:
                books.put(key.encode(), key.encode(), txn=txn)
            books.put(b"count", b"%d" % (count + 1), txn=txn)

    def group(self) -> None:
        """Two transactions and a send in one flush."""
        books, number = self.store.table(BOOKS), len(self.journal.lines)
        producer = self.store.create_producer("orders", connected=False)
        pairs = [[f"g{number}-{pair}{index}" for index in range(2)] for pair in range(2)]
        values = [f"{number}/g{index}" for index in range(2)]
        with (
            self.journal.attempt("group", keys=[*pairs[0], *pairs[1]], values=values),
            self.journal.attempt("put", keys=pairs[0], txn=None),
            self.journal.attempt("put", keys=pairs[1], txn=None),
            self.journal.attempt("send", topic="orders", values=values, txn=None, sequence_ids=None) as sent,
        ):
            with self.store.group():
                for keys in pairs:
                    with self.store.transaction() as txn:
                        for key in keys:
                            books.put(key.encode(), key.encode(), txn=txn)
                receipt = producer.send_batch([value.encode() for value in values], keys=["k1", "k2"])
            sent.result["ids"] = [str(each) for each in receipt]

    def settle(self) -> None:
        """Consume, put, send and acknowledge in one transaction, begun after receiving."""
        found = self.receive("standby", 2)
        txn = self.begin()
        self.put(2, txn)
        self.send("audit", 1, str(txn.id))
        self.acknowledge("standby", found, str(txn.id))
        self.end(txn, "commit")

    def deal(self, decision: str, flushes: bool) -> None:
        """Acknowledge, put, and send by two producers in turn, in a transaction that keeps what it does."""
        found, number = self.receive("standby", 2), len(self.journal.lines)
        sends = {of: [f"{number}/{index}" for index in range(2)] for of in ("orders", "audit")}
        keys = [f"d{number}-{index}" for index in range(2)]
        with self.journal.attempt(
            "deal", decision=decision, sends=sends, keys=keys, txn=None, subscription="standby",
            values=[_text(message) for message in found], up_to=_text(found[-1]) if found else None,
        ), self.store.transaction(timeout=300) as txn:  # fmt: skip
            if found:
                self.consumers["standby"].acknowledge_cumulative(found[-1], txn=txn)
            producers = [(self.store.create_producer(of), values) for of, values in sends.items()]
            for index, key in enumerate(keys):
                self.store.table(BOOKS).put(key.encode(), key.encode(), txn=txn)
                for producer, values in producers:
                    producer.send(values[index].encode(), key="k1", txn=txn)
                if flushes:
                    txn.flush()
            getattr(txn, decision)()
            for producer, _ in producers:
                producer.close()

    def crowd(self, decision: str) -> None:
        """Leave more intents than are finalised with the end of their transaction."""
        txn = self.begin()
        keys = [f"{len(self.journal.lines)}+{index}" for index in range(CROWD)]
        with self.journal.attempt("put", keys=keys, txn=str(txn.id)):
            self.store.table(BOOKS).import_rows(((key.encode(), key.encode()) for key in keys), txn=txn)
            txn.flush()
        self.end(txn, decision)

    def scrap(self) -> None:
        """A table comes and goes."""
        self.store.create_table(SCRAP)
        scrap = self.store.table(SCRAP)
        for number in range(4):
            scrap.put(b"%d" % (number % 3), b"")
        self.store.admin.tables.delete_table(SCRAP)

    def keep_books(self) -> None:
        """All that is done with tables."""
        self.put(2)
        self.group()
        self.transfer()
        self.settle()
        self.group()
        self.deal("commit", flushes=False)
        self.deal("abort", flushes=True)
        self.deal("commit", flushes=True)
        self.put(2, self.begin_detached())
        for decision in ("commit", "abort"):
            self.crowd(decision)
        self.transfer()
        self.store.maintenance.collect_garbage()
        self.scrap()

    def make_others(self) -> None:
        """Other stores come and go beside this one: an empty one, a backup of this one, one restored from it, a copy."""
        backup = self.path + ".backup"
        makers: dict[str, Callable[[str], object]] = {
            "spare": Store.create,
            "backup": self.store.maintenance.backup_store,
            "restored": lambda place: row_json(Store.restore(backup, place)),
            "copied": lambda place: row_json(Store.copy(self.path, place)),
        }
        for name, make in makers.items():
            place = backup if name == "backup" else places.name_of(f"{self.path}.{name}")
            if places.is_there(place):
                self.journal.note("try", "drop", store=name)
                places.remove(place)
            with self.journal.attempt("make", store=name):
                make(place)

    def round(self) -> None:
        """A bit of everything."""
        self.commit_detached()
        self.send("orders", 1)
        self.send("orders", 4)
        number = len(self.journal.lines)
        values = [f"{number}/{index}" for index in range(3)]
        ids = [10 * number + index for index in range(3)]
        assert self.send_named(values, ids) == 3
        assert self.send_named(values, ids) == 0
        for decision in ("commit", "abort"):
            txn = self.begin()
            self.send("orders", 1, str(txn.id))
            self.send("audit", 2, str(txn.id))
            for name in ("ledger", "keys") if decision == "commit" else ("standby", "workers"):
                self.acknowledge(name, self.receive(name, 3), str(txn.id))
            self.end(txn, decision)
        detached = str(self.begin_detached())
        self.send("audit", 1, detached)
        self.send("orders", 2, detached)
        self.acknowledge("keys", self.receive("keys", 2), detached)
        self.send("orders", 4)
        self.acknowledge("hurried", self.receive("hurried", 9)[1:])
        self.work()
        self.acknowledge("standby", self.receive("standby", 3))
        self.change_level()
        seen = self.receive("watch", 4)
        self.acknowledge("watch", seen[1:])
        self.rewind()
        self.reign()
        self.doom()
        self.forget()
        self.compact()
        self.keep_books()
        self.make_others()
        if not places.is_on_server():
            self.store.maintenance.compact_store()

    def work(self) -> None:
        """`workers`: every other message is poison, given back until it goes to the grave."""
        found = self.receive("workers", 4)
        self.acknowledge("workers", found[::2])
        for message in found[1::2]:
            self.consumers["workers"].negative_acknowledge(message, delay=0)

    def drain(self) -> None:
        """Consume whatever is left, on every subscription, and leave nothing attached or open."""
        known = {line["txn"] for line in self.journal.of("did", "begin")}
        for row in row_json(self.store.reports.list_transactions()):
            assert row["txnId"] not in known, "those of the journal were committed, or died with their owner"
            self.store.admin.transactions.abort_transaction(row["txnId"], force=True)
        for name in SUBSCRIPTIONS:
            while found := self.receive(name, 100):
                self.acknowledge(name, found)
            self.consumers.pop(name).close()
        self.store.admin.transactions.reap_transactions()
        self.store.maintenance.collect_garbage()
        assert row_json(self.store.reports.list_intents()) == []
        assert not [
            row
            for row in row_json(self.store.reports.list_transactions())
            if row["state"] == TransactionState.OPEN.value
        ]
        self.store.close()


def _text(message: Message) -> str:
    assert message.value is not None
    return message.value.decode()


def _kill_at(point: str, nth: int) -> None:
    reached = 0

    def action() -> None:
        nonlocal reached
        reached += 1
        if reached == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(point, action)


def shorten_steps() -> None:
    """Let what is removed in steps need several of them."""
    topics.PURGE_STEP_RECORDS = subscription_purge.PURGE_STEP_RECORDS = 2
    tables.GC_STEP_RECORDS = 2
    retention.GC_STEP_RECORDS = 20


def main(path: str, journal: str, mode: str, point: str = "", nth: str = "0") -> None:
    """See the module."""
    shorten_steps()
    if point:
        _kill_at(point, int(nth))
    workload = Workload(path, Journal(journal))
    say("started")
    workload.recover()
    if mode == "drain":
        workload.drain()
        return
    rounds = 0
    while not point or rounds < ROUNDS_MAX:
        workload.round()
        rounds += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
