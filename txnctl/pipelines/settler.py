"""Settling a batch of requests into a table of balances, exactly once: the same transaction on Spark and without it.

One serializable transaction reads the position through which the table is settled, adds the sums of a batch to the
balances and writes the new position: all of these, or nothing. Messages at or below a position never change at
READ_COMMITTED. So a batch that is repeated after a kill, with a lost checkpoint, by a second job or by the other
engine, finds its position recorded already and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from storage import MessageId, Store
from storage.client.tries import Tries
from storage.errors import BadInput, Conflict, LostConflict, TableNotFound
from storage.values.names import short_topic_name
from txnctl.output.shell import line
from txnctl.pipelines.hellers import HELLERS_MAX, format_hellers, parse_hellers
from txnctl.pipelines.request import KEYED, RequestForm
from txnctl.spark.sink import progress

if TYPE_CHECKING:
    from storage import Priority, Transaction

_RETRIES = 4
_ACCOUNTS_PER_FLUSH = 10_000
_TIMEOUT_S = 3600


class AccountSum(NamedTuple):
    """The part of a batch that changes one account, or, without an account, its messages that are no requests.

    Attributes:
        account: None for messages that are no requests; such a sum comes once in a batch at most.
        hellers: the sum of the legs, in hundredths.
        requests: requests whose first leg is of this account.
        skipped: messages that are no requests.
        first: the first of these messages; None without.
        last: the last message with a leg of this account, or that is no request.
    """

    account: str | None
    hellers: int
    requests: int
    skipped: int
    first: MessageId | None
    last: MessageId


SumsAfter = Callable[[MessageId | None], Iterator[AccountSum]]
"""Adds up a batch by account, without the messages up to a position; called again where a transaction lost a conflict.
"""


@dataclass(frozen=True)
class Settlement:
    """The result of one batch."""

    requests: int
    accounts: int
    skipped: int
    through: MessageId | None


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


class BatchSettler:
    """Settles the batches of one topic into one table.

    Attributes:
        total: what this run has settled.
        batches: how many batches brought something.
    """

    def __init__(
        self,
        store: Store,
        topic: str,
        table: str,
        options: SettleOptions = _DEFAULTS,
        on_batch: Callable[[Settlement], None] = lambda _: None,
    ) -> None:
        """Read the note of the topic and the table.

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

    @property
    def form(self) -> RequestForm:
        """Where account and amount stand in a message."""
        return self._options.form

    def settled_through(self, txn: Transaction | None = None) -> MessageId | None:
        """Return the last settled message; None before the first."""
        return settled_through(self._store, self._topic, self._accounts.name, txn)

    def settle(self, sums_after: SumsAfter, batch_id: int) -> None:
        """Settle one batch, without the messages settled before.

        Raises:
            BadInput: a message is not a request, or a balance in the table is no amount.
            Conflict: every attempt lost to a concurrent change of the same accounts.
        """
        tries = Tries(self._store.connection, _RETRIES)
        while True:
            tries.begin()
            after = self.settled_through()
            sums = sums_after(after)
            # Sums are computed on the request of the first: compute before the transaction begins.
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
        self, sums: Iterable[AccountSum], after: MessageId | None, batch_id: int, priority: Priority
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
            for part in sums:
                last = max(filter(None, (last, part.last)))
                requests_applied, skipped = requests_applied + part.requests, skipped + part.skipped
                if part.first is not None and not self._options.skip:
                    raise _not_a_request(part.first, self._options.form)
                if part.account is not None:
                    self._add(part.account, part.hellers, txn)
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

    def _add(self, account: str, hellers: int, txn: Transaction) -> None:
        """Add to a balance.

        Raises:
            BadInput: the balance is no amount, or would become one of more than 15 digits before the point.
        """
        key = account.encode()
        stored = self._accounts.get(key, txn=txn)
        try:
            balance = hellers + (0 if stored is None else parse_hellers(stored.decode()))
        except ValueError:
            raise BadInput(
                f"the balance of account {account} in table {self._accounts.name} is no amount: "
                f"{(stored or b'')[:40]!r}",
                hint=f"Put an amount such as 479.50 there: {line('tables put', self._accounts.name, account, 'VALUE')}",
                table=self._accounts.name,
            ) from None
        if abs(balance) > HELLERS_MAX:
            raise BadInput(
                f"the balance of account {account} in table {self._accounts.name} would be "
                f"{format_hellers(balance)}, of more than 15 digits",
                hint="Settle what is before it with a smaller --max-messages, to see which request is wrong.",
                table=self._accounts.name,
            )
        self._accounts.put(key, format_hellers(balance).encode(), txn=txn)

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
