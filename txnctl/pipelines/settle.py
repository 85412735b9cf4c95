"""The settle job: a topic at READ_COMMITTED, as it grows, becomes balances in a table, exactly once.

A micro-batch holds all legs of a request, and the requests that one transaction has sent to the topic, where it is
not too long: so the sum of all balances is right at every version of the table. Spark sums up each micro-batch by
account. Then one serializable transaction of the driver reads the position through which the table is settled, adds
the sums to the balances and writes the new position: all of these, or nothing.
Messages at or below a position never change at READ_COMMITTED. So a batch that is repeated after a kill, with a lost
checkpoint or by a second driver, finds its position recorded already and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from storage import MessageId, Store
from storage.client.tries import Tries
from storage.errors import BadInput, Conflict, LostConflict, TableNotFound
from storage.values.names import short_topic_name
from txnctl.output.shell import line
from txnctl.pipelines.hellers import format_hellers, parse_hellers
from txnctl.pipelines.request_columns import KEYED, REQUEST, RequestForm, requests
from txnctl.pipelines.streaming import Stream
from txnctl.spark import schemas
from txnctl.spark.runtime.job_errors import as_txnctl_errors
from txnctl.spark.sink import progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from storage import Priority, Transaction

_RETRIES = 4
_ACCOUNTS_PER_FLUSH = 10_000
_TIMEOUT_S = 3600


@dataclass(frozen=True)
class Settlement:
    """The result of one micro-batch."""

    requests: int
    accounts: int
    skipped: int
    through: MessageId | None


def transform(messages: DataFrame, after: MessageId | None, form: RequestForm = KEYED) -> DataFrame:
    """Sum up the messages after a position by account.

    Gives `account`, `hellers`, `requests`, `skipped`, `first` (struct of ledgerId, entryId, batchIndex of the first
    message that is not a request) and `last` (of the last message). Messages that are not requests are under the
    account null.
    """
    from pyspark.sql import functions as f

    request_rows = requests(messages, form)
    position = f.struct("ledgerId", "entryId", "batchIndex")
    if after is not None:
        settled = f.struct(
            f.lit(after.ledger_id).cast("bigint"),
            f.lit(after.entry_id).cast("bigint"),
            f.lit(after.batch_index),
        )
        request_rows = request_rows.where(position > settled)
    is_bad = f.col("problem").isNotNull()
    return (
        request_rows.select(
            f.when(~is_bad, f.col("account")).alias("account"),
            "hellers",
            is_bad.alias("bad"),
            (~is_bad & (f.col("leg") == 0)).alias("counts"),
            position.alias("place"),
        )
        .groupBy("account")
        .agg(
            f.sum(f.when(~f.col("bad"), f.col("hellers"))).alias("hellers"),
            f.count_if("counts").alias("requests"),
            f.count_if("bad").alias("skipped"),
            f.min(f.when(f.col("bad"), f.col("place"))).alias("first"),
            f.max("place").alias("last"),
        )
        .select("account", "hellers", "requests", "skipped", "first", "last")
    )


def settled_through(store: Store, topic: str, table: str, txn: Transaction | None = None) -> MessageId | None:
    """Return the last message of a topic (full name) settled into a table; None before the first.

    Raises:
        TableNotFound: the table is missing, or was created again since.
    """
    table_id = store.table(table).table_id
    if not store.has_table(progress.SINKS):
        return None
    note = store.table(progress.SINKS).get(_note_key(topic, table), txn=txn)
    if note is None:
        return None
    note_fields = json.loads(note)
    if note_fields["tableId"] != table_id:
        raise _recreated_table(topic, table, note_fields["through"])
    return MessageId.parse(note_fields["through"])


def _recreated_table(topic: str, table: str, through: str) -> TableNotFound:
    key = _note_key(topic, table).decode()
    return TableNotFound(
        f"table {table} was deleted and created again since topic {short_topic_name(topic)} was settled into it, "
        f"through {through}",
        hint=f"Settle into a table of another name. Or start over: {line('tables rm', progress.SINKS, key)}, and "
        "delete the subscription of settle.",
        table=table,
    )


def _note_key(topic: str, table: str) -> bytes:
    return f"settle {topic} {table}".encode()


@dataclass(frozen=True)
class SettleOptions:
    """The options of settling.

    Attributes:
        form: where account and amount stand in a message.
        skip: leave out messages that are not requests; otherwise the first such message ends the job.
    """

    form: RequestForm = KEYED
    skip: bool = False


_DEFAULTS = SettleOptions()


class Settler:
    """Settles the micro-batches of one topic into one table, for `foreachBatch`.

    Attributes:
        total: the sum of all batches so far.
        batches: how many batches had new messages.
    """

    def __init__(
        self,
        store: Store,
        topic: str,
        table: str,
        options: SettleOptions = _DEFAULTS,
        on_batch: Callable[[Settlement], None] = lambda _: None,
    ) -> None:
        """Open the table, which must exist, and create the table of sinks if missing.

        Args:
            topic: its full name.
            on_batch: called after each batch.

        Raises:
            TableNotFound: as `settled_through`.
        """
        progress.make_table(store)
        self._store = store
        self._topic = topic
        self._accounts = store.table(table)
        self._options = options
        self._on_batch = on_batch
        self.total = Settlement(0, 0, 0, self.settled_through())
        self.batches = 0

    def settled_through(self, txn: Transaction | None = None) -> MessageId | None:
        """Return the last settled message; None before the first."""
        return settled_through(self._store, self._topic, self._accounts.name, txn)

    def settle_batch(self, messages: DataFrame, batch_id: int) -> None:
        """Settle one micro-batch, without the messages settled before.

        Raises:
            BadInput: a message is not a request.
            Conflict: every attempt lost to a concurrent change of the same accounts.
        """
        tries = Tries(self._store.connection, _RETRIES)
        while True:
            tries.begin()
            after = self.settled_through()
            sums = iter(transform(messages, after, self._options.form).toLocalIterator())
            # Spark computes on the request of the first row: compute before the transaction begins.
            first = next(sums, None)
            if first is None:
                return
            try:
                settlement = self._apply(chain((first,), sums), after, batch_id, tries.priority)
            except Conflict as error:
                if not error.retryable or not tries.count_loss():
                    raise
                self._store.connection.clock.sleep(tries.draw_wait_s())
            else:
                self._count(settlement)
                return

    def _apply(
        self, sums: Iterable[Row], after: MessageId | None, batch_id: int, priority: Priority
    ) -> Settlement:
        """Add the sums to the balances and record the position, in one transaction."""
        last, requests_applied, accounts, skipped = after, 0, 0, 0
        with self._store.transaction(timeout=_TIMEOUT_S, labels={"job": "settle"}, priority=priority) as txn:
            if self.settled_through(txn) != after:
                txn.abort("settled by a concurrent job")
                raise LostConflict(
                    "a concurrent job settles the same topic into the same table",
                    hint="Run one job for each table.",
                )
            for row in sums:
                last = max(filter(None, (last, MessageId(*row["last"]))))
                requests_applied, skipped = requests_applied + row["requests"], skipped + row["skipped"]
                if row["skipped"] and not self._options.skip:
                    raise _not_a_request(MessageId(*row["first"]), self._options.form)
                if row["account"] is not None:
                    self._add(row["account"].encode(), row["hellers"], txn)
                    accounts += 1
                    if not accounts % _ACCOUNTS_PER_FLUSH:
                        txn.flush()
            note = {
                "through": str(last),
                "tableId": self._accounts.table_id,
                "batchId": batch_id,
                "requests": requests_applied,
                "accounts": accounts,
            }
            notes, key = self._store.table(progress.SINKS), _note_key(self._topic, self._accounts.name)
            notes.put(key, json.dumps(note).encode(), txn=txn)
        return Settlement(requests_applied, accounts, skipped, last)

    def _add(self, account: bytes, hellers: int, txn: Transaction) -> None:
        stored = self._accounts.get(account, txn=txn)
        balance = 0 if stored is None else parse_hellers(stored.decode())
        self._accounts.put(account, format_hellers(balance + hellers).encode(), txn=txn)

    def _count(self, settlement: Settlement) -> None:
        total = self.total
        self.total = Settlement(
            total.requests + settlement.requests,
            total.accounts + settlement.accounts,
            total.skipped + settlement.skipped,
            settlement.through,
        )
        self.batches += 1
        self._on_batch(settlement)


def _not_a_request(message: MessageId, form: RequestForm) -> BadInput:
    return BadInput(
        f"message {message} is not a request: a request has {form.wanted}",
        hint="--on-error skip leaves such messages out; --amount, --debit, --credit and --legs name fields.",
        messageId=str(message),
    )


def start_settling(
    spark: SparkSession,
    settler: Settler,
    options: dict[str, str],
    checkpoint: str,
    *,
    interval_s: float | None = None,
) -> Stream:
    """Start settling.

    Args:
        options: of `format("txnctl")`: path, topic and subscription at least.
        checkpoint: a directory for Spark; may be new each time, as the settled position is in the store.
        interval_s: seconds between two micro-batches; None settles the messages present, and ends.
    """
    with as_txnctl_errors():
        messages = (
            spark.readStream.format("txnctl")
            .schema(schemas.ddl(("key", "value", *REQUEST)))
            .options(**options, isolationLevel="READ_COMMITTED", wholeTransactions="true")
            .load()
        )
    return Stream(messages, settler.settle_batch, checkpoint, interval_s)
