"""Arguments of the Python API: a value outside an option's values is a `BadInput`, never taken apart, never ignored."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from storage import (
    EARLIEST,
    AccessMode,
    CheckMode,
    Consumer,
    IsolationLevel,
    MessageId,
    OnOpen,
    Position,
    Priority,
    Producer,
    Store,
    SubscriptionType,
    TransactionIsolation,
)
from storage.admin.acknowledgements import AcknowledgementAdmin
from storage.admin.producers import ProducerAdmin
from storage.admin.settings import SettingsAdmin
from storage.admin.subscriptions import SubscriptionAdmin
from storage.admin.tables import TableAdmin
from storage.admin.topics import TopicAdmin
from storage.admin.transactions import TransactionAdmin
from storage.client.reader import Reader
from storage.client.table import Table
from storage.client.transaction import Transaction
from storage.disk.superblock import ReapPolicy
from storage.errors import InvalidPosition, InvalidValue, MessageNotFound
from storage.limits import FINALIZE_INLINE_MAX
from storage.maintenance.maintenance import Maintenance
from storage.reports.reports import Reports
from storage.values.txn_state import AbortReason

Call = Callable[[Store, Any], Any]
HERE = Position(1, 0)


@pytest.fixture
def full(store: Store) -> Store:
    """A store with a table of one row and a topic of one message."""
    store.create_table("a")
    store.table("a").put(b"k", b"1")
    store.create_producer("t", connected=False).send(b"m")
    store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    return store


CONSTANTS: list[tuple[str, type[Enum], Call]] = [
    ("get", CheckMode, lambda store, name: store.table("a").get(b"k", check=name)),
    ("get of a missing key", CheckMode, lambda store, name: store.table("a").get(b"none", check=name)),
    ("get_row", CheckMode, lambda store, name: store.table("a").get_row(b"k", check=name)),
    ("scan", CheckMode, lambda store, name: store.table("a").scan(check=name)),
    (
        "get in a transaction",
        CheckMode,
        lambda store, name: store.table("a").get(
            b"k", txn=store.transaction(isolation="read-committed"), check=name
        ),
    ),
    (
        "get in a detached transaction",
        CheckMode,
        lambda store, name: store.table("a").get(
            b"k", txn=store.begin_transaction(isolation="read-committed"), check=name
        ),
    ),
    (
        "transaction check",
        CheckMode,
        lambda store, name: store.transaction(isolation="read-committed", check=name),
    ),
    (
        "begin_transaction check",
        CheckMode,
        lambda store, name: store.begin_transaction(isolation="read-committed", check=name),
    ),
    ("transaction", TransactionIsolation, lambda store, name: store.transaction(isolation=name)),
    ("begin_transaction", TransactionIsolation, lambda store, name: store.begin_transaction(isolation=name)),
    ("transaction priority", Priority, lambda store, name: store.transaction(priority=name)),
    ("begin_transaction priority", Priority, lambda store, name: store.begin_transaction(priority=name)),
    ("reader", IsolationLevel, lambda store, name: store.reader("t", isolation_level=name)),
    ("last_message_id", IsolationLevel, lambda store, name: store.reports.last_message_id("t", name)),
    (
        "count_messages_between",
        IsolationLevel,
        lambda store, name: store.reports.count_messages_between("t", Position(1, -1), HERE, name),
    ),
    (
        "subscribe level",
        IsolationLevel,
        lambda store, name: store.subscribe("t", "n", subscription_isolation_level=name).close(),
    ),
    (
        "create_subscription level",
        IsolationLevel,
        lambda store, name: store.admin.subscriptions.create_subscription(
            "t", "n", subscription_isolation_level=name
        ),
    ),
    (
        "update_subscription level",
        IsolationLevel,
        lambda store, name: store.admin.subscriptions.update_subscription(
            "t", "s", subscription_isolation_level=name
        ),
    ),
    (
        "subscribe",
        SubscriptionType,
        lambda store, name: store.subscribe("t", "n", subscription_type=name).close(),
    ),
    (
        "create_subscription",
        SubscriptionType,
        lambda store, name: store.admin.subscriptions.create_subscription("t", "n", subscription_type=name),
    ),
    (
        "update_subscription",
        SubscriptionType,
        lambda store, name: store.admin.subscriptions.update_subscription("t", "s", subscription_type=name),
    ),
    (
        "subscribe on_open",
        OnOpen,
        lambda store, name: store.subscribe("t", "n", subscription_type="shared", on_open=name).close(),  # type: ignore[arg-type]
    ),
    (
        "create_subscription on_open",
        OnOpen,
        lambda store, name: store.admin.subscriptions.create_subscription(
            "t",
            "n",
            subscription_type="shared",  # type: ignore[arg-type]
            on_open=name,
        ),
    ),
    (
        "update_subscription on_open",
        OnOpen,
        lambda store, name: store.admin.subscriptions.update_subscription(
            "t",
            "s",
            subscription_type="shared",  # type: ignore[arg-type]
            on_open=name,
        ),
    ),
    ("create_producer", AccessMode, lambda store, name: store.create_producer("t", access_mode=name).close()),
    ("open_session", AccessMode, lambda store, name: store.open_session("t", access_mode=name)),
    ("set_reap_policy", ReapPolicy, lambda store, name: store.admin.settings.set_reap_policy(name)),
    (
        "list_ended_transactions",
        AbortReason,
        lambda store, name: store.reports.list_ended_transactions(reason=name),
    ),
]


def spelled(constant: Enum) -> str:
    return constant.value if isinstance(constant.value, str) else constant.name.lower()


@pytest.mark.parametrize(
    ("kind", "call"), [each[1:] for each in CONSTANTS], ids=[each[0] for each in CONSTANTS]
)
class TestConstants:
    """An option with named values."""

    def test_anything_else_is_refused_with_the_values(
        self, full: Store, kind: type[Enum], call: Call
    ) -> None:
        """The refusal names every value that is allowed; nothing stands for the default or another value."""
        for wrong in ("most", "", "-", 0, 7, b"full", [], True, Exception):
            with pytest.raises(InvalidValue) as caught:
                call(full, wrong)
            for constant in kind:
                assert spelled(constant) in str(caught.value.hint)

    def test_every_name_is_taken_in_any_spelling(self, full: Store, kind: type[Enum], call: Call) -> None:
        """The constant, its value, and its name as a command takes it."""
        first = next(iter(kind))
        for name in (first, spelled(first).upper(), spelled(first).lower().replace("_", "-")):
            call(full, name)
            if "n" in {row.subscription for row in full.reports.list_subscriptions("t")}:
                full.admin.subscriptions.delete_subscription("t", "n")
            full.admin.producers.fence_producers("t")


def test_the_check_mode_that_is_named_is_the_one_that_counts(full: Store) -> None:
    """`none` as text looks no transaction up, as the constant does: before, it was `full`."""
    table, txn = full.table("a"), full.begin_transaction()
    table.import_rows([(b"k", b"2"), *((b"%d" % n, b"") for n in range(FINALIZE_INLINE_MAX))], txn=txn)
    full.commit_transaction(txn)
    with full.transaction(isolation="read-committed", check="full") as reader:
        for check, value in (("none", b"1"), (CheckMode.NONE, b"1"), ("Full", b"2"), (None, b"2")):
            row = table.get_row(b"k", txn=reader, check=check)
            assert row is not None
            assert (table.get(b"k", txn=reader, check=check), row.value) == (value, value)
            assert next(table.scan(prefix=b"k", txn=reader, check=check)).value == value


MESSAGE_IDS: list[tuple[str, Call]] = [
    ("acknowledge", lambda store, one: attached(store).acknowledge(one)),
    ("negative_acknowledge", lambda store, one: attached(store).negative_acknowledge(one)),
    ("cumulative", lambda store, one: attached(store).acknowledge_cumulative(one)),
    ("operator's", lambda store, one: store.admin.acknowledgements.acknowledge_messages("t", "s", [one])),
    (
        "operator's nack",
        lambda store, one: store.admin.acknowledgements.negative_acknowledge_messages("t", "s", [one]),
    ),
]


def attached(store: Store) -> Consumer:
    """A consumer of subscription `s`, to which several may be attached, one of them active."""
    return store.subscribe("t", "s", subscription_type=SubscriptionType.FAILOVER)


@pytest.mark.parametrize("call", [each[1] for each in MESSAGE_IDS], ids=[each[0] for each in MESSAGE_IDS])
class TestMessageIds:
    """A message or its id."""

    def test_anything_else_is_refused_as_a_whole(self, full: Store, call: Call) -> None:
        """The refusal shows what was given, and not its first letter or number."""
        for wrong in ("zzz", "1:0", "", b"1:0", 5, None, HERE):
            with pytest.raises(InvalidPosition) as caught:
                call(full, wrong)
            assert caught.value.message == f"{wrong!r} is neither a message nor a message id"

    def test_a_message_that_is_not_there_is_not_found(self, full: Store, call: Call) -> None:
        """Beyond the end, a marker, and an index that the entry has not."""
        txn = full.begin_transaction()
        full.create_producer("t", connected=False).send(b"committed", txn=txn)
        full.commit_transaction(txn)
        for missing in (MessageId(9, 9), MessageId(1, 2), MessageId(1, 0, 1)):
            with pytest.raises(MessageNotFound):
                call(full, missing)


def test_a_message_that_is_not_in_flight_may_be_given_back(full: Store) -> None:
    """It stays as it is: an operator may have taken it back, or it is acknowledged."""
    with full.subscribe("t", "s") as consumer:
        consumer.negative_acknowledge(MessageId(1, 0))
        message = consumer.receive(timeout=0)
        consumer.acknowledge(message)
        consumer.negative_acknowledge(message)
        assert full.reports.peek_messages("t", "s") == []


POSITIONS: list[tuple[str, Call]] = [
    ("reader", lambda store, at: store.reader("t", start=at)),
    ("topic_log", lambda store, at: list(store.reports.topic_log("t", at))),
    ("subscribe", lambda store, at: store.subscribe("t", "n", initial_position=at).close()),
    ("seek", lambda store, at: store.admin.subscriptions.seek_subscription("t", "s", at)),
    (
        "create",
        lambda store, at: store.admin.subscriptions.create_subscription("t", "n", initial_position=at),
    ),
    ("furthest after", lambda store, at: store.reports.furthest_position("t", at, HERE)),
    ("furthest through", lambda store, at: store.reports.furthest_position("t", HERE, at)),
    ("count after", lambda store, at: store.reports.count_messages_between("t", at, HERE)),
    ("count through", lambda store, at: store.reports.count_messages_between("t", HERE, at)),
    ("acknowledge", lambda store, at: store.admin.acknowledgements.acknowledge_through("t", "s", at)),
]


@pytest.mark.parametrize("call", [each[1] for each in POSITIONS], ids=[each[0] for each in POSITIONS])
def test_no_position_is_refused(full: Store, call: Call) -> None:
    """Whatever takes a position says so, before anything is changed."""
    for wrong in ("first", "", 5, None, b"1:0", ("1", "0"), object()):
        with pytest.raises(InvalidPosition, match="is not a position"):
            call(full, wrong)


LISTS: list[tuple[str, Call]] = [
    ("topic_extents", lambda store, names: store.reports.topic_extents(names)),
    ("store_report", lambda store, names: store.reports.store_report(names)),
    ("keys", lambda store, keys: store.create_producer("t", connected=False).send_batch([b"1"], keys=keys)),
    ("values", lambda store, values: store.create_producer("t", connected=False).send_batch(values)),
    (
        "sequence ids",
        lambda store, ids: store.create_producer("t", producer_name="p", connected=False).send_batch(
            [b"1"], sequence_ids=ids
        ),
    ),
    (
        "acknowledge",
        lambda store, ids: store.admin.acknowledgements.acknowledge_messages("t", "s", ids),
    ),
    (
        "give back",
        lambda store, ids: store.admin.acknowledgements.negative_acknowledge_messages("t", "s", ids),
    ),
]


@pytest.mark.parametrize("call", [each[1] for each in LISTS], ids=[each[0] for each in LISTS])
def test_a_text_is_no_list(full: Store, call: Call) -> None:
    """It is refused as a whole, in place of letter by letter."""
    for text in ("text", b"text"):
        with pytest.raises(InvalidValue, match=r"are a list, not b?'text'"):
            call(full, text)


COUNTS: list[tuple[str, Call]] = [
    ("scan", lambda store, count: store.table("a").scan(limit=count)),
    ("split", lambda store, count: store.table("a").split(count)),
    ("intents", lambda store, count: store.table("a").intents(count)),
    ("history", lambda store, count: store.table("a").history(count)),
    ("list_transactions", lambda store, count: store.reports.list_transactions(limit=count)),
    ("list_ended", lambda store, count: store.reports.list_ended_transactions(limit=count)),
    ("ownership_history", lambda store, count: store.reports.ownership_history("t", count)),
    ("list_audit_records", lambda store, count: store.reports.list_audit_records(count)),
    ("list_conflicts", lambda store, count: store.reports.list_conflicts(count)),
    ("list_intents", lambda store, count: store.reports.list_intents(limit=count)),
    ("topic_log", lambda store, count: list(store.reports.topic_log("t", limit=count))),
    ("peek_messages", lambda store, count: store.reports.peek_messages("t", "s", count)),
    ("read_batch", lambda store, count: store.reader("t").read_batch(count)),
    ("receive_batch", lambda store, count: attached(store).receive_batch(count, timeout=0)),
    ("receiver queue", lambda store, count: store.subscribe("t", "s", receiver_queue_size=count)),
    ("redeliveries", lambda store, count: store.subscribe("t", "n", max_redeliver_count=count)),
    ("skip", lambda store, count: store.admin.subscriptions.skip_messages("t", "s", count)),
    ("ledger entries", lambda store, count: store.create_topic("n", ledger_entries_max=count)),
    ("reap", lambda store, count: store.admin.transactions.reap_transactions(count)),
]


TIMES: list[tuple[str, Call]] = [
    ("list_ended", lambda store, ms: store.reports.list_ended_transactions(since_ms=ms)),
    ("position_at", lambda store, ms: store.reports.position_at("t", ms)),
]


@pytest.mark.parametrize("call", [each[1] for each in COUNTS], ids=[each[0] for each in COUNTS])
def test_no_number_is_refused(full: Store, call: Call) -> None:
    """A number of messages or rows is a whole one, and not negative."""
    for wrong in ("7", -1, 1.5, b"1", []):
        with pytest.raises(InvalidValue):
            call(full, wrong)


@pytest.mark.parametrize("call", [each[1] for each in TIMES], ids=[each[0] for each in TIMES])
def test_no_time_is_refused(full: Store, call: Call) -> None:
    """A time is whole milliseconds, before 1970 too."""
    call(full, -1)
    for wrong in ("7", 1.5, b"1", []):
        with pytest.raises(InvalidValue, match="milliseconds since 1970"):
            call(full, wrong)


SPANS: list[tuple[str, Call]] = [
    ("open", lambda store, s: Store.open(store.path, lock_timeout=s)),
    ("transaction", lambda store, s: store.transaction(timeout=s)),
    ("begin_transaction", lambda store, s: store.begin_transaction(timeout=s)),
    ("open_session", lambda store, s: store.open_session("t", lease=s)),
    ("receive", lambda store, s: attached(store).receive(s)),
    ("receive_batch", lambda store, s: attached(store).receive_batch(1, s)),
    ("read_next", lambda store, s: store.reader("t").read_next(s)),
    ("list_slow", lambda store, s: store.reports.list_slow_transactions(s)),
    ("give back", lambda store, s: attached(store).negative_acknowledge(MessageId(1, 0), delay=s)),
    ("wait", lambda store, s: store.reports.wait_for_transaction(store.begin_transaction(), s)),
    (
        "give back from outside",
        lambda store, s: store.admin.acknowledgements.negative_acknowledge_messages(
            "t", "s", [MessageId(1, 0)], delay=s
        ),
    ),
]


@pytest.mark.parametrize("call", [each[1] for each in SPANS], ids=[each[0] for each in SPANS])
def test_no_span_is_refused(full: Store, call: Call) -> None:
    """A span of time is a number of seconds, not negative; True is not a second."""
    for wrong in ("7", -1, float("nan"), True, b"1", []):
        with pytest.raises(InvalidValue):
            call(full, wrong)


def test_a_delay_is_a_number(full: Store) -> None:
    """Of any size, for a message that is given back for ever."""
    consumer = attached(full)
    for wrong in (None, True, "1", -1):
        with pytest.raises(InvalidValue, match="a delay is 0 to 3153600000 seconds"):
            consumer.negative_acknowledge(MessageId(1, 0), delay=wrong)


def options() -> list[tuple[type, str, str]]:
    """Class, method and name of each option of the API that is True or False."""
    found = []
    for owner in (
        Store, Consumer, Producer, Reader, Table, Transaction, Reports, Maintenance, AcknowledgementAdmin,
        ProducerAdmin, SettingsAdmin, SubscriptionAdmin, TableAdmin, TopicAdmin, TransactionAdmin,
    ):  # fmt: skip
        for name, method in inspect.getmembers(owner, callable):
            if not name.startswith("_"):
                found += [
                    (owner, name, option.name)
                    for option in inspect.signature(method).parameters.values()
                    if option.annotation == "bool"
                ]
    return found


@pytest.mark.parametrize(
    ("owner", "method", "option"), options(), ids=lambda part: getattr(part, "__name__", part)
)
@pytest.mark.parametrize("wrong", ["yes", 1, None], ids=repr)
def test_an_option_is_true_or_false(full: Store, owner: type, method: str, option: str, wrong: Any) -> None:
    """A text, which counts as true whatever it says, is refused before anything is done."""
    function = getattr(full if owner is Store else owner, method)
    names = {"topic": "t", "subscription_name": "new", "name": "a", "path": full.path}
    given = {
        parameter.name: names.get(parameter.name, "") if owner is Store else None
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.name != option
    }
    with pytest.raises(InvalidValue, match=f"{option} is True or False, not {wrong!r}"):
        function(**given, **{option: wrong})


def test_a_row_to_import_is_a_pair(full: Store) -> None:
    """A text is not taken for a key and a value, and nothing is written."""
    for wrong in ("ab", ["ab"], [b"ab"], [5], [(b"k",)], [(b"k", b"v", b"w")]):
        with pytest.raises(InvalidValue):
            full.table("a").import_rows(wrong)  # type: ignore[arg-type]
    assert full.table("a").get(b"k") == b"1"


@pytest.mark.parametrize("wrong", [5, b"because", ["because"]], ids=repr)
def test_a_reason_is_text(full: Store, wrong: Any) -> None:
    """Whoever ends a transaction or changes a subscription may say why, in text."""
    txn = full.transaction()
    for call in (
        lambda: txn.abort(wrong),
        lambda: full.admin.subscriptions.seek_subscription("t", "s", EARLIEST, reason=wrong),
    ):
        with pytest.raises(InvalidValue, match="a reason is text"):
            call()
