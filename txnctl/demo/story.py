"""The story of PIP-298 in a bank, act by act, on a real store.

    1  the bank            topics, a table, and two subscriptions with different isolation levels
    2  ordinary business   A1 and A2 send; E books; D watches
    3  a transfer is open  A2 does not commit a transfer; thousands of requests arrive behind it
    4  E stands still      and why; D sees everything
    5  commit              E goes on, and is killed in the middle of the work; a second E takes over
    6  abort               a transfer that D saw and E never does
    7  the audit           every balance against the data's own

Each act describes the actions, checks the claims and returns the numbers as facts. An act builds on the store as the
previous act left it. Everything happens through the public interfaces: client A1 is a separate process, `txnctl
produce`, and so is the E that is killed; A2, D and the second E are this process.
"""

from __future__ import annotations

from time import perf_counter

from storage import Store, Transaction
from txnctl.demo.audit import audit, check_balances
from txnctl.demo.casualty import start_and_kill
from txnctl.demo.clients import (
    ACCOUNTS,
    BALANCES,
    BATCH,
    BUSINESS,
    MONITOR,
    REQUESTS,
    BusinessE,
    ClientA1,
    ClientA2,
    MonitorD,
    balances,
    bookings,
)
from txnctl.demo.facts import (
    AbortedFacts,
    BlockedFacts,
    CommittedFacts,
    KilledFacts,
    OrdinaryFacts,
    StoryFacts,
)
from txnctl.demo.narrator import Narrator
from txnctl.demo.script import Script
from txnctl.demo.transaction import DEBIT, REMITTANCE, BankTransaction
from txnctl.output.human import plural
from txnctl.output.shell import line
from txnctl.pipelines.hellers import format_hellers

_STAND_STILL_S = 0.25
"""How long E is watched standing still."""

_RELEASE_S = 5.0
"""How long a new E waits for the messages of a dead E; usually they are free at once."""

_TRANSFER_MESSAGES = 2
_FALSE_TRANSFER_HELLERS = 1_000_000_00


class StoryStage:
    """The store, the actors, and the count of sent requests."""

    def __init__(self, store: Store, path: str, script: Script, narrator: Narrator) -> None:
        self.store = store
        self.path = path
        self.script = script
        self.narrator = narrator
        self.sent = 0
        """Requests sent, whatever the outcome of their transaction."""
        store.create_topic(REQUESTS)
        store.create_topic(BALANCES)
        store.create_table(ACCOUNTS)
        self.a2 = ClientA2(store)
        self.monitor = MonitorD(store)
        self.business = BusinessE(store)

    def send(self, lines: list[BankTransaction]) -> int:
        """Let A1 and A2 send lines, both at the same time; return the number of requests."""
        remittances = [line for line in lines if line.is_remittance]
        plain_lines = [line for line in lines if not line.is_remittance]
        sent = len(plain_lines)
        with self.narrator.progress(len(lines)) as progress:
            with ClientA1(self.path, plain_lines):
                for line in remittances:
                    sent += self.a2.remit(line)
                    progress.advance()
            progress.advance(len(plain_lines))
        self.sent += sent
        return sent

    def leave_open(self, line: BankTransaction) -> Transaction:
        """Let A2 send a remittance without a commit."""
        self.sent += _TRANSFER_MESSAGES
        return self.a2.leave_open(line)

    def bounds(self) -> tuple[str, str]:
        """Return maxReadPosition and lastConfirmedEntry of the requests, from one read."""
        counts = self.store.reports.topic_stats(REQUESTS).counts
        return str(counts.max_read_position), str(counts.last_confirmed_entry)

    def close(self) -> None:
        """Close all actors."""
        for actor in (self.a2, self.monitor, self.business):
            actor.close()


class OpenTransfer:
    """A remittance in an open transaction, and the topic's maxReadPosition before the remittance."""

    __slots__ = ("behind", "bound", "txn")

    def __init__(self, txn: Transaction, bound: str, behind: int) -> None:
        self.txn = txn
        self.bound = bound
        self.behind = behind
        """How many requests were sent after the remittance."""


def play(store: Store, path: str, script: Script, narrator: Narrator) -> StoryFacts:
    """Play all acts; return their facts. The results of all checks are in `narrator.checks`."""
    stage = StoryStage(store, path, script, narrator)
    _the_bank(stage)
    ordinary = _ordinary_business(stage)
    transfer = _a_transfer_is_open(stage)
    blocked = _e_stands_still(stage, transfer)
    committed = _commit(stage, transfer)
    aborted = _abort(stage)
    stage.close()
    narrator.act("The audit")
    audited = audit(store, script, stage.monitor, _TRANSFER_MESSAGES, narrator)
    return StoryFacts(ordinary, blocked, committed, aborted, audited)


def _the_bank(stage: StoryStage) -> None:
    tell, lines = stage.narrator, stage.script.lines
    tell.act("The bank")
    tell.say(
        f"{len(lines):,} transactions of {plural(len(stage.script.balances_at_end()), 'account')}, "
        f"{lines[0].date} to {lines[-1].date}. Every account begins at 0.00, and each line of the data says what its "
        "balance is afterwards."
    )
    tell.say(
        f"Topic {REQUESTS} takes every request to change a balance. Client A1, a process of its own "
        "(txnctl produce), sends deposits, withdrawals, interest and fees. Client A2 sends remittances to other "
        "banks: two requests, the account minus and the other bank's settlement account plus, in one transaction, so "
        "that both count or neither."
    )
    tell.say(f"Table {ACCOUNTS} holds every account's balance.")
    tell.say("Two systems read that topic, each through a subscription with its own isolation level:")
    tell.table(
        ["SYSTEM", "SUBSCRIPTION", "ISOLATION LEVEL", "WHAT IT WANTS"],
        [
            ["E, business", BUSINESS, "READ_COMMITTED", "book what is final, exactly once"],
            ["D, monitoring", MONITOR, "READ_UNCOMMITTED", "see everything at once, final or not"],
        ],
    )


def _ordinary_business(stage: StoryStage) -> OrdinaryFacts:
    tell, lines = stage.narrator, stage.script.opening
    tell.act("Ordinary business")
    sent = stage.send(lines)
    watched = stage.monitor.watch()
    booked = stage.business.work()
    remittances = sent - len(lines)
    tell.say(
        f"A1 sends {plural(len(lines) - remittances, 'request')} in batches; A2, at the same time, "
        f"{plural(remittances, 'remittance')}, each in a transaction that it commits. "
        f"{plural(sent, 'message')} together."
    )
    tell.say(
        f"E books {booked:,}. In one transaction it puts the new balance into table {ACCOUNTS}, tells of the booking "
        f"on topic {BALANCES} and acknowledges the request: none of the three is ever there without the others. D "
        f"sees {watched:,}."
    )
    tell.check_equal("requests E booked", sent, booked)
    tell.check_equal("messages D saw", sent, watched)
    _check_e(stage, "E agrees with the data so far", stage.script.balances_before_transfer())
    return OrdinaryFacts(len(lines), sent, remittances, booked)


def _a_transfer_is_open(stage: StoryStage) -> OpenTransfer:
    tell, line = stage.narrator, stage.script.transfer
    tell.act("A transfer stays open")
    bound, _ = stage.bounds()
    txn = stage.leave_open(line)
    tell.say(
        f"Account {line.account_id} remits {format_hellers(-line.delta, grouped=True)} to bank {line.bank}. A2 sends "
        f"the two requests in transaction {txn.id} and does not commit it: it waits for the other bank's answer."
    )
    behind = stage.send(stage.script.meanwhile)
    tell.say(
        f"Business goes on. {plural(behind, 'further request')} arrive, every one of them plain or committed."
    )
    return OpenTransfer(txn, bound, behind)


def _e_stands_still(stage: StoryStage, transfer: OpenTransfer) -> BlockedFacts:
    tell = stage.narrator
    tell.act("E stands still, D sees everything")
    watched = stage.monitor.watch()
    booked = stage.business.work(wait=_STAND_STILL_S)
    bound, last = stage.bounds()
    tell.say(
        f"E asks for requests and gets {booked:,}. A READ_COMMITTED subscription is handed messages up to the topic's "
        f"maxReadPosition, which is {bound}: the entry just before the first message of {transfer.txn.id}. The last "
        f"entry written is {last}. What lies between is safe, and waits. So says the store itself:"
    )
    lags = {
        name: stage.store.reports.subscription_stats(REQUESTS, name).row.stats for name in (BUSINESS, MONITOR)
    }
    tell.table(
        ["SUBSCRIPTION", "ISOLATION LEVEL", "MARK-DELETE", "VISIBLE", "BLOCKED", "UNCOMMITTED"],
        [
            [name, lag.subscription_isolation_level, lag.mark_delete_position, lag.visible, lag.blocked,
             lag.uncommitted]
            for name, lag in lags.items()
        ],
    )  # fmt: skip
    tell.say(
        f"D, READ_UNCOMMITTED, sees {watched:,} messages more, the two of the open transfer among them. Its total "
        f"of the customers' money is up to date: {format_hellers(stage.monitor.customers_money, grouped=True)}."
    )
    lag = lags[BUSINESS]
    tell.check_equal("requests E was handed while the transfer is open", 0, booked)
    tell.check_equal("maxReadPosition, the same as before the transfer", transfer.bound, bound)
    tell.check_equal(
        "requests blocked for E, all that were sent behind the transfer", transfer.behind, lag.blocked
    )
    tell.check_equal("uncommitted requests, those of the transfer", _TRANSFER_MESSAGES, lag.uncommitted)
    tell.check_equal(
        "the transaction E is told it waits for", str(transfer.txn.id), _blocking(stage.business)
    )
    tell.check_equal("messages D saw", transfer.behind + _TRANSFER_MESSAGES, watched)
    tell.check_equal("of them uncommitted at that moment", _TRANSFER_MESSAGES, stage.monitor.by_state["OPEN"])
    _check_e(stage, "E still has the balances from before", stage.script.balances_before_transfer())
    tell.pause(
        line("subscriptions lag", REQUESTS, path=stage.path),
        line("transactions show", transfer.txn.id, path=stage.path),
    )
    return BlockedFacts(
        transaction=transfer.txn.id,
        max_read_position=bound,
        last_confirmed_entry=last,
        blocked=lag.blocked,
        uncommitted=lag.uncommitted,
        delivered=booked,
        monitor_saw=watched,
    )


def _commit(stage: StoryStage, transfer: OpenTransfer) -> CommittedFacts:
    tell = stage.narrator
    tell.act("Commit; E is killed in the middle of its work, and nothing is booked twice")
    transfer.txn.commit()
    bound, last = stage.bounds()
    tell.say(
        f"The other bank answers, and A2 commits {transfer.txn.id}. At that instant maxReadPosition moves from "
        f"{transfer.bound} to {bound}."
    )
    tell.check_equal("maxReadPosition, now the last entry written", last, bound)
    killed = _kill_an_e(stage, min(BATCH, transfer.behind + _TRANSFER_MESSAGES))
    began = perf_counter()
    stage.business = BusinessE(stage.store)
    caught_up = stage.business.work(wait=_RELEASE_S)
    milliseconds = int((perf_counter() - began) * 1000)
    tell.say(
        f"A new E attaches. What the dead one had is free again, messages and keys alike; the balances stand in table "
        f"{ACCOUNTS}. It books {plural(caught_up, 'request')} in {milliseconds / 1000:.1f} s."
    )
    state = stage.store.reports.show_transaction(killed.transaction).row.state.value
    tell.check_equal("what became of the killed E's transaction", "ABORTED", state)
    tell.check_equal(
        "requests the new E booked, the transfer and all behind it", transfer.behind + 2, caught_up
    )
    twice = sum(times > 1 for times in stage.business.received.values())
    tell.check_equal("requests that came to the new E twice", 0, twice)
    _check_e(stage, "E agrees with the data again", stage.script.balances_after_meanwhile())
    return CommittedFacts(bound, caught_up, milliseconds, killed)


def _kill_an_e(stage: StoryStage, in_hand: int) -> KilledFacts:
    """Kill an E in a separate process before the commit; none of its work may show."""
    tell = stage.narrator
    stage.business.close()
    before, had = len(bookings(stage.store)), balances(stage.store)
    killed = start_and_kill(stage.path)
    tell.say(
        f"E, this time as process {killed.pid}, receives {killed.requests:,} requests, books them to "
        f"{killed.accounts:,} accounts and acknowledges them in transaction {killed.transaction}, and is killed "
        "(SIGKILL) before it commits."
    )
    tell.check_equal("requests the killed E had in hand", in_hand, killed.requests)
    left = len(stage.store.reports.list_intents(ACCOUNTS))
    tell.check_equal("balances the killed E had written, not committed", killed.accounts, left)
    tell.check_equal("bookings of the killed E that can be seen", 0, len(bookings(stage.store)) - before)
    seen = sum(had.get(key) != balance for key, balance in balances(stage.store).items())
    tell.check_equal("balances of the killed E that can be seen", 0, seen)
    return killed


def _abort(stage: StoryStage) -> AbortedFacts:
    tell, lines = stage.narrator, stage.script.closing
    tell.act("A transfer is aborted")
    aborted_before = stage.monitor.by_state["OPEN"]
    txn = stage.leave_open(false := _false_transfer(stage.script))
    sent = stage.send(lines)
    watched = stage.monitor.watch()
    while_open = stage.business.work()
    txn.abort(reason="the customer recalled it")
    booked = stage.business.work(wait=_RELEASE_S if lines else 0.0)
    tell.say(
        f"A2 sends one more, {format_hellers(-false.delta, grouped=True)} from account {false.account_id} in "
        f"transaction {txn.id}, and {plural(sent, 'request')} arrive behind it. Then A2 aborts it: the customer has "
        f"recalled the transfer. D had seen it the moment it was written. E books the {booked:,} behind it and never "
        "learns of it."
    )
    tell.check_equal("requests E was handed before the abort", 0, while_open)
    tell.check_equal(
        "messages D saw, the two of the aborted transfer included", sent + _TRANSFER_MESSAGES, watched
    )
    seen_open = stage.monitor.by_state["OPEN"] - aborted_before
    tell.check_equal("of them uncommitted at that moment", _TRANSFER_MESSAGES, seen_open)
    tell.check_equal("requests E booked, all but the aborted two", sent, booked)
    _check_e(stage, "E agrees with the data to the end", stage.script.balances_at_end())
    return AbortedFacts(txn.id, sent, watched, booked)


def _false_transfer(script: Script) -> BankTransaction:
    """Make up a transfer that is not in the data."""
    line = script.transfer
    return BankTransaction(
        max(line.trans_id for line in script.lines) + 1,
        line.account_id,
        script.lines[-1].date,
        DEBIT,
        REMITTANCE,
        _FALSE_TRANSFER_HELLERS,
        0,
        "",
        line.bank,
        line.account,
        0,
        -_FALSE_TRANSFER_HELLERS,
        "",
    )


def _blocking(business: BusinessE) -> str | None:
    blocked = business.consumer.blocked_by()
    return None if blocked is None else str(blocked.txn_id)


def _check_e(stage: StoryStage, name: str, expected: dict[str, int]) -> None:
    check_balances(name, balances(stage.store), expected, stage.narrator)
