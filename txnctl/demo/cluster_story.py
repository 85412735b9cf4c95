"""The story on a cluster: a primary that is killed in the middle of all work, and a standby that goes on.

    1  the cluster         a primary, a standby for which every commit waits, and a store on both
    2  ordinary business   A1 and A2 send; E books; D watches
    3  the primary dies    while a transfer is open, E is booking, A1 and A2 are sending
    4  the standby         takes over, and gets a standby of its own; nothing confirmed is lost
    5  business goes on    A1 repeats its input, A2 asks about its last transaction; nothing is booked twice
    6  the audit           every balance against the data's own

`python -m txnctl.demo.cluster_story [--accounts N] [--seed N]` plays the story on two servers that the story starts and
ends. Exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from time import monotonic, sleep

from storage import EARLIEST, IsolationLevel, Store
from storage.errors import OutcomeUnknown, StoreInvalid, TxnctlError
from storage.values.named_tuple import NamedTuple
from txnctl.demo.audit import audit_books, audit_store, check_balances
from txnctl.demo.clients import (
    ACCOUNTS,
    BALANCES,
    REQUESTS,
    BusinessE,
    ClientA1,
    ClientA2,
    MonitorD,
    balances,
    bookings,
)
from txnctl.demo.cluster import Cluster, running_cluster
from txnctl.demo.generator import SEED_DEFAULT, generate
from txnctl.demo.narrator import Narrator
from txnctl.demo.request import read_request
from txnctl.demo.script import Script, messages_of
from txnctl.demo.transaction import BankTransaction
from txnctl.output.human import plural
from txnctl.output.shell import spell

ACCOUNTS_OF_STORY = 40
_PROGRAM = "demo on a cluster"
_A1_BATCH = 5
"""Requests of one commit while the primary is killed: small, so that A1 is at work for a while."""

_CONFIRMED = 12
"""Remittances that A2 has confirmed when the primary is killed."""

_RELEASE_S = 5.0
_URL = re.compile(r"postgresql://\S+")
_BEGIN_S = 20.0
_LOOK_S = 0.01


class ClusterStage:
    """The actors of this process on the store; after a failover the next stage has new ones.

    Attributes:
        store: an open handle on the URL of the cluster.
    """

    def __init__(self, cluster: Cluster, store: Store, script: Script, narrator: Narrator) -> None:
        self.cluster = cluster
        self.url = cluster.url("bank")
        self.store = store
        self.script = script
        self.narrator = narrator
        self.a2 = ClientA2(store)
        self.monitor = MonitorD(store)
        self.business = BusinessE(store)

    def send(self, lines: list[BankTransaction], sequence_id: int) -> None:
        """Let A1 and A2 send lines, both at the same time; `sequence_id` is that of A1's first request."""
        with ClientA1(self.url, _plain(lines), sequence_id=sequence_id):
            for line in _remittances(lines):
                self.a2.remit(line)

    def stored(self, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> Counter[int]:
        """Read how many requests of each transaction of the bank are stored."""
        reader = self.store.reader(REQUESTS, start=EARLIEST, isolation_level=level)
        counts: Counter[int] = Counter()
        while messages := reader.read_batch(1000):
            counts.update(read_request(message.key, message.value)[1] for message in messages)
        return counts

    def check_booked(self, name: str, expected: dict[str, int]) -> None:
        """Compare E's balances with the data so far."""
        check_balances(name, balances(self.store), expected, self.narrator)


class Wreck(NamedTuple):
    """The state of the clients when the primary had died.

    Attributes:
        transfer, booking: numbers of A2's open transfer and of E's transaction.
        confirmed: remittances whose commit was confirmed.
        in_doubt: the remittance at which A2 met the death, if any.
        died: monotonic time of the death.
    """

    transfer: str
    booking: str
    confirmed: list[BankTransaction]
    in_doubt: BankTransaction | None
    died: float


def play(cluster: Cluster, script: Script, narrator: Narrator) -> None:
    """Play all acts; the results of all checks are in `narrator.checks`."""
    Store.create(cluster.url("bank"))
    with _opened(cluster) as store:
        _the_cluster(cluster, store, script, narrator)
        stage = ClusterStage(cluster, store, script, narrator)
        _ordinary_business(stage)
        wreck = _the_primary_dies(stage)
    _the_standby_takes_over(cluster, narrator)
    with _opened(cluster) as store:
        stage = ClusterStage(cluster, store, script, narrator)
        narrator.say(
            f"{monotonic() - wreck.died:.1f} s after the death all clients of this process are attached again: they "
            "have opened the store anew, by the same URL."
        )
        _nothing_is_lost(stage, wreck)
        _business_goes_on(stage, wreck)
        narrator.act("The audit")
        audit_books(store, script, narrator)
        check_present(stage)
        audit_store(store, narrator)


@contextmanager
def _opened(cluster: Cluster) -> Iterator[Store]:
    """The store within the block; a handle whose server has died is closed without an error."""
    store = Store.open(cluster.url("bank"), program=_PROGRAM)
    try:
        yield store
    finally:
        with suppress(StoreInvalid):
            store.close()


def _the_cluster(cluster: Cluster, store: Store, script: Script, tell: Narrator) -> None:
    store.create_topic(REQUESTS)
    store.create_topic(BALANCES)
    store.create_table(ACCOUNTS)
    lines = script.lines
    tell.act("The cluster")
    tell.say(
        f"Two PostgreSQL servers run in a temporary directory. {cluster.primary.name.capitalize()} is the primary, "
        f"{cluster.standby.name} its synchronous standby: a commit is confirmed when both have it on disk. The bank's "
        "store is a schema there; to its clients it is a URL with both servers, of which they take the primary."
    )
    tell.say(
        f"The bank is that of `txnctl demo`: {len(lines):,} transactions of "
        f"{plural(len(script.balances_at_end()), 'account')}. A1 sends plain requests with sequence ids, A2 "
        "remittances in transactions of two requests; E books at READ_COMMITTED, D watches at READ_UNCOMMITTED."
    )
    tell.check_equal("standbys for which commits wait", "1", cluster.primary.ask(
        "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
    ))  # fmt: skip


def _ordinary_business(stage: ClusterStage) -> None:
    tell, lines = stage.narrator, stage.script.opening
    tell.act("Ordinary business")
    stage.send(lines, 0)
    booked, watched = stage.business.work(), stage.monitor.watch()
    tell.say(f"A1 and A2 send {messages_of(lines):,} requests. E books {booked:,}, D sees {watched:,}.")
    tell.check_equal("requests E booked", messages_of(lines), booked)
    tell.check_equal("requests D saw", messages_of(lines), watched)
    stage.check_booked("E agrees with the data so far", stage.script.balances_before_transfer())


def _the_primary_dies(stage: ClusterStage) -> Wreck:
    tell, script = stage.narrator, stage.script
    tell.act(f"{stage.cluster.primary.name.capitalize()}, the primary, is killed in the middle of all work")
    business = stage.business
    stage.a2.remit(script.transfer)
    first, early, late = _halves(script)
    with ClientA1(stage.url, early, sequence_id=first):
        pass
    messages = business.receive_unprocessed()
    booking = stage.store.transaction()
    business.book(messages, booking)
    business.flush_writes(booking)
    false = stage.a2.leave_open(script.transfer)
    numbers = str(false.id), str(booking.id)
    tell.say(
        f"E has booked {plural(len(messages), 'request')} in transaction {booking.id} and has not committed. A2 "
        f"holds a second transfer open in {false.id}. A1, as a process of its own, is sending, {_A1_BATCH} requests "
        "a commit, and A2 sends remittances, each a transaction. Then all processes of the primary get SIGKILL."
    )
    a1 = ClientA1(stage.url, late, sequence_id=first + len(early), batch=_A1_BATCH)
    _wait_for_a1(stage)
    confirmed, in_doubt, died = _remit_until_death(stage)
    tell.say(f"A1 says: {_last_word(a1)}")
    tell.say(f"E says, at its commit: {_refusal(booking.commit)}")
    tell.say(f"A2 says, of the transfer it held: {_refusal(false.commit)}")
    return Wreck(*numbers, confirmed, in_doubt, died)


def _wait_for_a1(stage: ClusterStage) -> None:
    """Wait until requests of A1's present process are stored."""
    counts = stage.store.reports.topic_stats(REQUESTS).counts
    before, until = counts.last_confirmed_entry, monotonic() + _BEGIN_S
    while stage.store.reports.topic_stats(REQUESTS).counts.last_confirmed_entry == before:
        if monotonic() > until:
            raise TxnctlError("client A1, a process of its own, has sent nothing")
        sleep(_LOOK_S)


def _remit_until_death(stage: ClusterStage) -> tuple[list[BankTransaction], BankTransaction | None, float]:
    """Let A2 send remittances while the primary is killed; return those confirmed, the one in doubt, the time."""
    tell, primary = stage.narrator, stage.cluster.primary
    lines = _remittances(stage.script.meanwhile)
    killer = Thread(target=primary.kill)
    confirmed: list[BankTransaction] = []
    in_doubt: BankTransaction | None = None
    died = monotonic()
    for line in lines:
        if len(confirmed) == min(_CONFIRMED, len(lines) // 3):
            died = monotonic()
            killer.start()
        try:
            stage.a2.remit(line)
        except (StoreInvalid, OutcomeUnknown) as error:
            in_doubt = line
            tell.say(
                f"A2 had {plural(len(confirmed), 'remittance')} confirmed, and is told of the next one: {_first(error)}"
            )
            break
        confirmed.append(line)
    if killer.ident is None:
        killer.start()
    killer.join()
    return confirmed, in_doubt, died


def _last_word(a1: ClientA1) -> str:
    """Wait for the end of A1; return its error, or that it had sent everything."""
    try:
        with a1:
            pass
    except TxnctlError as error:
        return _first(error)
    return "all requests sent and confirmed, before the death."


def _refusal(commit: Callable[[], object]) -> str:
    try:
        commit()
    except TxnctlError as error:
        return _first(error)
    return "committed"


def _first(error: TxnctlError) -> str:
    """An error on one line; the URL, which is long and the same everywhere in this story, as `the store`."""
    return f"{error.code}: {_URL.sub('the store', error.message)}"


def _the_standby_takes_over(cluster: Cluster, tell: Narrator) -> None:
    tell.act(f"{cluster.standby.name.capitalize()} takes over")
    began = monotonic()
    cluster.promote()
    promoted = monotonic()
    tell.say(
        f"An operator promotes {cluster.primary.name}: {promoted - began:.2f} s. Commits still wait for a second copy, "
        f"so {cluster.standby.name} is made anew as the standby of {cluster.primary.name}."
    )
    cluster.standby.make_standby_of(cluster.primary)
    tell.say(f"That takes {monotonic() - promoted:.2f} s. In real life programs such as Patroni do both.")
    tell.check_equal(
        "the new primary is no standby any more", "f", cluster.primary.ask("SELECT pg_is_in_recovery()")
    )


def _nothing_is_lost(stage: ClusterStage, wreck: Wreck) -> None:
    tell, opening = stage.narrator, stage.script.opening
    stored = stage.stored()
    kept = sum(stored[line.trans_id] == 2 for line in wreck.confirmed)
    tell.check_equal("confirmed remittances that are there, both halves", len(wreck.confirmed), kept)
    earlier = sum(stored[line.trans_id] > 0 for line in opening)
    tell.check_equal("transactions of the act before that are there", len(opening), earlier)
    if wreck.in_doubt is not None:
        halves = stored[wreck.in_doubt.trans_id]
        tell.say(
            f"The remittance in doubt: {'committed after all' if halves else 'not committed'}, as the store now says."
        )
        tell.check_equal("the remittance in doubt is there as a whole or not at all", True, halves in (0, 2))


def _business_goes_on(stage: ClusterStage, wreck: Wreck) -> None:
    tell, script = stage.narrator, stage.script
    tell.act("Business goes on")
    done = {line.trans_id for line in wreck.confirmed}
    if wreck.in_doubt is not None and stage.stored()[wreck.in_doubt.trans_id]:
        done.add(wreck.in_doubt.trans_id)
    left = [line for line in _remittances(script.meanwhile) if line.trans_id not in done]
    tell.say(
        "A1 sends the whole of its interrupted input again, with the same sequence ids: the store leaves out what it "
        f"has. A2 sends the {plural(len(left), 'remittance')} that are not there. Then the rest of the data follows."
    )
    first = len(_plain(script.opening))
    with ClientA1(stage.url, _plain(script.meanwhile), sequence_id=first):
        for line in left:
            stage.a2.remit(line)
    stage.business.work(wait=_RELEASE_S)
    stage.check_booked("E agrees with the data again", script.balances_after_meanwhile())
    states = sorted(_state(stage.store, txn) for txn in (wreck.booking, wreck.transfer))
    tell.check_equal(
        "what became of the two transactions that were open at the death",
        "ABORTED, ABORTED",
        ", ".join(states),
    )
    stage.send(script.closing, first + len(_plain(script.meanwhile)))
    stage.business.work()
    watched = stage.monitor.watch()
    tell.say(f"D, attached anew, sees {watched:,} requests since its last acknowledgement.")


def _state(store: Store, txn: str) -> str:
    return store.reports.show_transaction(txn).row.state.value


def check_present(stage: ClusterStage) -> None:
    """Check that the topic has every request of the data once, and that every one was booked once."""
    tell, script, stored = stage.narrator, stage.script, stage.stored()
    expected = Counter({line.trans_id: 1 + line.is_remittance for line in script.lines})
    tell.check_equal("requests lost", 0, (expected - stored).total())
    tell.check_equal("requests stored twice", 0, (stored - expected).total())
    tell.check_equal("bookings, one for each request", expected.total(), len(bookings(stage.store)))


def _halves(script: Script) -> tuple[int, list[BankTransaction], list[BankTransaction]]:
    """A1's first sequence id of the lines behind the transfer, and these lines in two halves."""
    plain = _plain(script.meanwhile)
    return len(_plain(script.opening)), plain[: len(plain) // 2], plain[len(plain) // 2 :]


def _plain(lines: list[BankTransaction]) -> list[BankTransaction]:
    return [line for line in lines if not line.is_remittance]


def _remittances(lines: list[BankTransaction]) -> list[BankTransaction]:
    return [line for line in lines if line.is_remittance]


def main(words: list[str] | None = None) -> int:
    """Play the story; return 0 if every check held."""
    parser = argparse.ArgumentParser(
        prog="python -m txnctl.demo.cluster_story",
        description="The bank's story on a cluster of two PostgreSQL servers.",
    )
    parser.add_argument("--accounts", type=int, default=ACCOUNTS_OF_STORY, help="accounts to generate")
    parser.add_argument("--seed", type=int, default=SEED_DEFAULT, help="another seed makes another bank")
    arguments = parser.parse_args(words)
    narrator = Narrator(lambda text: print(text, flush=True))
    try:
        script = Script(list(generate(arguments.accounts, arguments.seed)))
        with running_cluster() as cluster:
            play(cluster, script, narrator)
    except TxnctlError as error:
        hint = f"\ntxnctl: hint: {spell(error.hint)}" if error.hint else ""
        print(f"txnctl: error: {error.message}{hint}", file=sys.stderr)
        return error.exit_code
    failed = [check for check in narrator.checks if not check.ok]
    narrator.line()
    narrator.say(
        f"{len(narrator.checks) - len(failed)} of {len(narrator.checks)} checks held. Both servers are ended, and "
        "their directory is gone."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("txnctl: error: interrupted", file=sys.stderr)
        sys.exit(130)
