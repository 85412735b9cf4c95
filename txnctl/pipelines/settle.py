"""A topic, READ_COMMITTED, as it grows -> balances in a table, exactly once.

Each micro-batch is summed up by account in Spark. Then one serializable transaction of the driver reads how far the
table was settled, adds the sums to the balances and notes how far it is settled now: all of it, or nothing. The note
is a position of the topic, and what READ_COMMITTED has behind one never changes. So a batch that comes again, after a
kill, with a lost checkpoint or from a second driver, finds what it brings noted already, and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from storage import MessageId, Store
from storage.errors import BadInput, Conflict, LostConflict, TableNotFound
from storage.values.names import short_topic_name
from txnctl.pipelines.hellers import format_hellers, parse_hellers
from txnctl.pipelines.money import AMOUNT_DEFAULT, REQUEST, requests
from txnctl.pipelines.streaming import Stream
from txnctl.spark import schemas
from txnctl.spark.sink import progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from storage import Transaction

_ATTEMPTS = 5
_ACCOUNTS_AT_ONCE = 10_000
_TIMEOUT_S = 3600


@dataclass(frozen=True)
class Settlement:
    """What one micro-batch came to."""

    requests: int
    accounts: int
    skipped: int
    through: MessageId | None


def transform(messages: DataFrame, after: MessageId | None, amount: str = AMOUNT_DEFAULT) -> DataFrame:
    """Sums by account of the messages after a position.

    Gives `account`, `hellers`, `requests`, `skipped`, `first` (struct of ledgerId, entryId, batchIndex of the first
    message that is no request) and `last` (of the last message). Messages that are no requests are under the account
    null.
    """
    from pyspark.sql import functions as f

    found = requests(messages, amount)
    place = f.struct("ledgerId", "entryId", "batchIndex")
    if after is not None:
        settled = f.struct(
            f.lit(after.ledger_id).cast("bigint"),
            f.lit(after.entry_id).cast("bigint"),
            f.lit(after.batch_index),
        )
        found = found.where(place > settled)
    is_bad = f.col("problem").isNotNull()
    return (
        found.select(
            f.when(~is_bad, f.col("account")).alias("account"),
            "hellers",
            is_bad.alias("bad"),
            place.alias("place"),
        )
        .groupBy("account")
        .agg(
            f.sum(f.when(~f.col("bad"), f.col("hellers"))).alias("hellers"),
            f.count_if(~f.col("bad")).alias("requests"),
            f.count_if("bad").alias("skipped"),
            f.min(f.when(f.col("bad"), f.col("place"))).alias("first"),
            f.max("place").alias("last"),
        )
        .select("account", "hellers", "requests", "skipped", "first", "last")
    )


def settled_through(store: Store, topic: str, table: str, txn: Transaction | None = None) -> MessageId | None:
    """The last message of a topic, by its full name, that is settled into a table; None before the first.

    Raises:
        TableNotFound: there is no such table, or it is another one than that which was settled into.
    """
    table_id = store.table(table).table_id
    if not store.has_table(progress.SINKS):
        return None
    note = store.table(progress.SINKS).get(_note_key(topic, table), txn=txn)
    if note is None:
        return None
    found = json.loads(note)
    if found["tableId"] != table_id:
        raise _another_table(topic, table, found["through"])
    return MessageId.parse(found["through"])


def _another_table(topic: str, table: str, through: str) -> TableNotFound:
    key = _note_key(topic, table).decode()
    return TableNotFound(
        f"table {table} was deleted and created again since topic {short_topic_name(topic)} was settled into it, "
        f"through {through}",
        hint=f"Settle into a table of another name. Or begin anew: txnctl tables rm {progress.SINKS} '{key}', and "
        "delete the subscription of settle.",
        table=table,
    )


def _note_key(topic: str, table: str) -> bytes:
    return f"settle {topic} {table}".encode()


class Settler:
    """The micro-batches of one topic into one table, for `foreachBatch`.

    Attributes:
        total: what all batches so far came to.
        batches: how many of them brought something.
    """

    def __init__(
        self,
        store: Store,
        topic: str,
        table: str,
        *,
        amount: str = AMOUNT_DEFAULT,
        skip: bool = False,
        told: Callable[[Settlement], None] = lambda _: None,
    ) -> None:
        """Of the table, which has to be there, and of the table of notes, which is made.

        Args:
            topic: its full name.
            skip: leave out messages that are no requests; otherwise the first one ends the job.
            told: called after each batch.

        Raises:
            TableNotFound: as `settled_through`.
        """
        progress.make_table(store)
        self._store = store
        self._topic = topic
        self._accounts = store.table(table)
        self._amount = amount
        self._skip = skip
        self._told = told
        self.total = Settlement(0, 0, 0, self.through())
        self.batches = 0

    def through(self, txn: Transaction | None = None) -> MessageId | None:
        """The last message that is settled; None before the first."""
        return settled_through(self._store, self._topic, self._accounts.name, txn)

    def settle(self, messages: DataFrame, batch_id: int) -> None:
        """Settle one micro-batch, as far as that was not done before.

        Raises:
            BadInput: a message is no request.
            Conflict: another one settles into the same accounts all the time.
        """
        for attempt in range(_ATTEMPTS):
            after = self.through()
            sums = iter(transform(messages, after, self._amount).toLocalIterator())
            # Nothing is computed before the first row is asked for, and the transaction is not to wait for that.
            first = next(sums, None)
            if first is None:
                return
            try:
                done = self._apply(chain((first,), sums), after, batch_id)
            except Conflict as error:
                if not error.retryable or attempt == _ATTEMPTS - 1:
                    raise
            else:
                self._count(done)
                return

    def _apply(self, sums: Iterable[Row], after: MessageId | None, batch_id: int) -> Settlement:
        """Add the sums to the balances and note how far that is, in one transaction."""
        last, counted, accounts, skipped = after, 0, 0, 0
        with self._store.transaction(timeout=_TIMEOUT_S, labels={"job": "settle"}) as txn:
            if self.through(txn) != after:
                txn.abort("another one settled these messages")
                raise LostConflict(
                    "another one settles the same topic into the same table", hint="Run only one."
                )
            for row in sums:
                last = max(filter(None, (last, MessageId(*row["last"]))))
                counted, skipped = counted + row["requests"], skipped + row["skipped"]
                if row["skipped"] and not self._skip:
                    raise _no_request(MessageId(*row["first"]), self._amount)
                if row["account"] is not None:
                    self._add(row["account"].encode(), row["hellers"], txn)
                    accounts += 1
                    if not accounts % _ACCOUNTS_AT_ONCE:
                        txn.flush()
            note = {
                "through": str(last),
                "tableId": self._accounts.table_id,
                "batchId": batch_id,
                "requests": counted,
                "accounts": accounts,
            }
            notes, key = self._store.table(progress.SINKS), _note_key(self._topic, self._accounts.name)
            notes.put(key, json.dumps(note).encode(), txn=txn)
        return Settlement(counted, accounts, skipped, last)

    def _add(self, account: bytes, hellers: int, txn: Transaction) -> None:
        has = self._accounts.get(account, txn=txn)
        balance = 0 if has is None else parse_hellers(has.decode())
        self._accounts.put(account, format_hellers(balance + hellers).encode(), txn=txn)

    def _count(self, done: Settlement) -> None:
        total = self.total
        self.total = Settlement(
            total.requests + done.requests,
            total.accounts + done.accounts,
            total.skipped + done.skipped,
            done.through,
        )
        self.batches += 1
        self._told(done)


def _no_request(message: MessageId, amount: str) -> BadInput:
    return BadInput(
        f"message {message} is no request: it has a key, and JSON with an amount in {amount!r}, or it is none",
        hint="--on-error skip leaves such messages out; --amount names another field.",
        messageId=str(message),
    )


def run(
    spark: SparkSession,
    settler: Settler,
    options: dict[str, str],
    checkpoint: str,
    *,
    every: float | None = None,
) -> Stream:
    """Start settling.

    Args:
        options: of `format("txnctl")`: path, topic and subscription at least.
        checkpoint: a directory for Spark. It may be a new one each time: how far it is settled stands in the store.
        every: seconds between two looks at the topic; None settles what is there, and ends.
    """
    messages = (
        spark.readStream.format("txnctl")
        .schema(schemas.ddl(("key", "value", *REQUEST)))
        .options(**options, isolationLevel="READ_COMMITTED")
        .load()
    )
    return Stream(messages, settler.settle, checkpoint, every)
