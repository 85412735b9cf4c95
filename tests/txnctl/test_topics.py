"""`txnctl topics`: what each command shows, in every format, and that looking changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from tests.row_json import row_json
from txnctl.commands.topics import (
    delete,
    last_message_id,
    log,
    positions as topic_positions,
    show,
    stats,
    stats_internal,
)
from txnctl.fields import topic
from txnctl.output.field import undeclared
from txnctl.output.messages import MESSAGE_FIELDS

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def stuck(path: Path) -> dict[str, str]:
    """`orders` with an open transaction in the middle; the ids of what is in it.

    1:0 .. 1:3 plain; 1:4 aborted (marker 1:5); 1:6 first open (2 messages); 1:7 plain, 3 messages; 1:8 second open.
    """
    with Store.open(path) as store:
        store.create_topic("orders")
        producer = store.create_producer("orders", producer_name="loader")
        for number in range(4):
            producer.send(b"plain %d" % number, key=f"k{number}")
        aborted = store.begin_transaction()
        producer.send(b"aborted", txn=aborted)
        store.admin.transactions.abort_transaction(aborted)
        first = store.begin_transaction(labels={"job": "load"})
        producer.send_batch([b"open 0", b"open 1"], txn=first)
        producer.send_batch([b"later 0", b"later 1", None])
        second = store.begin_transaction()
        producer.send(b"second", txn=second)
        billing = store.subscribe(
            "orders", "billing", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        billing.acknowledge(billing.receive_batch(2, timeout=1))
        monitor = store.subscribe(
            "orders",
            "monitor",
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
            initial_position=EARLIEST,
        )
        monitor.acknowledge_cumulative(monitor.receive_batch(100, timeout=1)[-1])
        for each in (billing, monitor, producer):
            each.close()
    return {"first": str(first), "second": str(second), "aborted": str(aborted)}


class TestCreate:
    """`topics create`."""

    def test_it_creates_the_topic_and_says_so(self, run: Any, path: Path) -> None:
        """A sentence for people, an object for programs."""
        assert run("topics", "create", "orders").out == "Created topic orders.\n"
        made = run("topics", "create", "persistent://bank/core/payments", "-o", "json").json
        assert made == {"topic": "persistent://bank/core/payments", "name": "persistent://bank/core/payments"}
        assert run("topics", "create", "third", "-o", "name").out == "third\n"
        with Store.open(path) as store:
            assert store.topics() == ["persistent://bank/core/payments", "orders", "third"]

    def test_creating_it_again_is_a_conflict(self, run: Any) -> None:
        """Also by its full name; the topic stays as it is."""
        assert run("topics", "create", "orders").status == 0
        again = run("topics", "create", "persistent://public/default/orders", "-o", "json")
        assert again.status == 4
        assert again.error["code"] == "already-exists"

    def test_a_limit_rolls_the_ledger_over(self, run: Any, path: Path) -> None:
        """`--ledger-entries 2` puts the third entry into the second ledger."""
        assert run("topics", "create", "orders", "--ledger-entries", "2").status == 0
        with Store.open(path) as store:
            ids = [str(store.create_producer("orders").send(b"x")) for _ in range(3)]
        assert ids == ["1:0", "1:1", "2:0"]

    @pytest.mark.parametrize(
        "words",
        [
            ("--ledger-entries", "0"),
            ("--ledger-entries", "many"),
            ("--ledger-bytes", "-1"),
            ("--ledger-bytes", "1 GB"),
            ("--ledger-age", "1"),
            ("--ledger-age", "yesterday"),
        ],
        ids=" ".join,
    )
    def test_a_limit_that_is_none_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """And no topic is created."""
        assert run("topics", "create", "orders", *words).status == 2
        assert run("topics", "list", "-o", "json").json == []


class TestList:
    """`topics list`."""

    def test_an_empty_list_is_success(self, run: Any) -> None:
        """Nothing on standard output but what the format needs."""
        outcome = run("topics", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "topics create" in outcome.err
        assert run("topics", "list", "-o", "json").out == "[]\n"
        assert run("topics", "list", "-o", "ndjson").out == ""

    @pytest.mark.usefixtures("stuck")
    def test_each_topic_has_its_counts(self, run: Any) -> None:
        """The same in JSON and in the table."""
        run("topics", "create", "empty")
        empty, orders = run("topics", "list", "-o", "json").json
        assert not undeclared(orders, (*topic.NAMES, *topic.COUNTS))
        assert orders["topic"] == "persistent://public/default/orders"
        assert (orders["msgCount"], orders["markerCount"]) == (11, 1)
        assert (orders["maxReadPosition"], orders["lastConfirmedEntry"]) == ("1:5", "1:8")
        assert (orders["ongoingTxnCount"], orders["uncommittedMessages"]) == (2, 3)
        assert (empty["msgCount"], empty["firstPosition"], empty["lastPublishMs"]) == (0, None, None)
        table = run("topics", "list").out.splitlines()
        assert table[0].split()[:3] == ["TOPIC", "MESSAGES", "SIZE"]
        assert [line.split()[0] for line in table[1:]] == ["empty", "orders"]
        assert run("topics", "list", "-o", "name").out == "empty\norders\n"

    @pytest.mark.usefixtures("stuck")
    def test_its_short_name_is_ls(self, run: Any) -> None:
        """As everywhere."""
        assert run("topics", "ls", "-o", "name").out == "orders\n"


class TestShow:
    """`topics show`."""

    @pytest.mark.usefixtures("stuck")
    def test_it_names_the_subscriptions_and_the_counts(self, run: Any) -> None:
        """All declared fields, no other."""
        row = run("topics", "show", "orders", "-o", "json").json
        assert set(row) == {field.name for field in show.SHOWN}
        assert row["subscriptions"] == ["billing", "monitor"]
        assert row["createdMs"] <= row["asOfMs"]
        assert "billing, monitor" in run("topics", "show", "orders").out


class TestStats:
    """`topics stats`."""

    def test_json_has_pulsars_names(self, run: Any, stuck: dict[str, str]) -> None:
        """Subscriptions are a map by name, with the level and the split backlog of each."""
        row = run("topics", "stats", "orders", "-o", "json").json
        assert not undeclared(row, stats.STATS)
        assert row["maxReadPosition"] == "1:5"
        assert row["readableMessages"] == 4
        assert row["skippedMessages"] == 1
        assert row["blockedMessages"] == 3
        assert row["blockedBy"]["txnId"] == stuck["first"]
        assert row["blockedBy"]["ownerState"] == "detached"
        billing, monitor = row["subscriptions"]["billing"], row["subscriptions"]["monitor"]
        assert billing["type"] == "Shared"
        assert billing["subscriptionIsolationLevel"] == "READ_COMMITTED"
        assert [billing[name] for name in ("visible", "blocked", "uncommitted", "pending")] == [2, 3, 3, 0]
        assert billing["msgBacklog"] == 8
        assert monitor["subscriptionIsolationLevel"] == "READ_UNCOMMITTED"
        assert monitor["msgBacklog"] == 0

    def test_the_table_tells_who_blocks_and_what_to_type(self, run: Any, stuck: dict[str, str]) -> None:
        """Line by line as the operator reads it."""
        out = run("topics", "stats", "orders").out
        head, positions, readable, blocked, uncommitted, _, headings, billing, monitor, _, following = (
            out.splitlines()
        )
        assert head.startswith("orders      11 messages, 1 marker, ")
        assert head.split("as of ")[1].endswith("Z")
        assert positions == "  positions   first 1:0   maxReadPosition 1:5   lastConfirmedEntry 1:8"
        assert readable == "  readable    4 committed (1 aborted skipped)"
        assert blocked.startswith("  BLOCKED     3 committed, oldest waiting ")
        assert blocked.endswith(f", behind transaction {stuck['first']}")
        assert uncommitted == "  uncommitted 3 in 2 open transactions"
        assert headings.split()[:4] == ["SUBSCRIPTION", "TYPE", "ISOLATION", "LEVEL"]
        assert billing.split() == [
            "billing",
            "Shared",
            "READ_COMMITTED",
            "1:1",
            "2",
            "3",
            "0",
            "0",
            "no-consumer",
        ]
        assert monitor.split() == ["monitor", "Excl.", "READ_UNCOMMITTED", "1:8", "0", "0", "0", "0", "ok"]
        assert following == f"Next: txnctl transactions explain {stuck['first']}"

    @pytest.mark.usefixtures("stuck")
    def test_the_next_command_is_one_that_exists(self, run: Any) -> None:
        """It can be typed as it stands."""
        words = run("topics", "stats", "orders").out.splitlines()[-1].removeprefix("Next: txnctl ").split()
        assert run(*words).status == 0

    def test_an_empty_topic_is_two_lines_of_facts(self, run: Any) -> None:
        """No section that has nothing to say."""
        run("topics", "create", "orders")
        out = run("topics", "stats", "orders").out.splitlines()
        assert len(out) == 3
        assert out[0].startswith("orders      0 messages, 0 markers, 0 B")
        assert "Next" not in out[-1]

    @pytest.mark.usefixtures("stuck")
    def test_colour_is_for_terminals_and_changes_no_word(self, run: Any) -> None:
        """Without it there is not one escape character."""
        plain = run("topics", "stats", "orders", "--color", "never", terminal=True).out
        coloured = run("topics", "stats", "orders", "--color", "always").out
        assert "\x1b" not in plain
        assert "\x1b[" in coloured
        for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"):
            coloured = coloured.replace(code, "")
        assert coloured.splitlines()[1:3] == plain.splitlines()[1:3]

    @pytest.mark.usefixtures("stuck")
    def test_attached_consumers_are_counted(self, run: Any, path: Path) -> None:
        """With one attached the verdict is no longer `no-consumer`."""
        with Store.open(path) as store, store.subscribe("orders", "billing"):
            row = run("topics", "stats", "orders", "-o", "json").json["subscriptions"]["billing"]
            line = next(
                each for each in run("topics", "stats", "orders").out.splitlines() if "billing" in each
            )
        assert [each["state"] for each in row["consumers"]] == ["alive"]
        assert line.split()[-2:] == ["1", "mixed"]


class TestStatsInternal:
    """`topics stats-internal`."""

    def test_json_has_ledgers_cursors_and_segments(self, run: Any, stuck: dict[str, str]) -> None:
        """All declared, all from one view."""
        row = run("topics", "stats-internal", "orders", "-o", "json").json
        assert not undeclared(row, stats_internal.INTERNAL)
        assert [(ledger["ledgerId"], ledger["entries"]) for ledger in row["ledgers"]] == [(1, 9)]
        assert row["cursors"]["monitor"]["markDeletePosition"] == "1:8"
        assert [each["txnId"] for each in row["openTransactions"]] == [stuck["first"], stuck["second"]]
        assert row["abortedSegments"][0]["transactions"] == 1

    @pytest.mark.usefixtures("stuck")
    def test_the_table_has_a_section_for_each(self, run: Any) -> None:
        """And none for what is not there."""
        out = run("topics", "stats-internal", "orders").out
        for heading in ("LEDGER ", "CURSOR ", "OPEN TRANSACTION", "ABORTED SEGMENT"):
            assert heading in out
        run("topics", "create", "empty")
        out = run("topics", "stats-internal", "empty").out
        assert "LEDGER " in out
        assert "CURSOR" not in out


class TestPositions:
    """`topics positions`."""

    def test_landmarks_are_in_order_and_sum_up(self, run: Any, stuck: dict[str, str]) -> None:
        """Entries before, the entry itself, and entries after are all there are."""
        row = run("topics", "positions", "orders", "-o", "json").json
        assert not undeclared(row, topic_positions.POSITIONS)
        found = [(each["position"], each["kind"], each["name"]) for each in row["positions"]]
        assert found == [
            ("1:0", "ledger", "1"),
            ("1:1", "markDeletePosition", "billing"),
            ("1:5", "readPosition", "billing"),
            ("1:5", "maxReadPosition", None),
            ("1:6", "openTransaction", stuck["first"]),
            ("1:8", "openTransaction", stuck["second"]),
            ("1:8", "markDeletePosition", "monitor"),
            ("1:8", "readPosition", "monitor"),
            ("1:8", "lastConfirmedEntry", None),
        ]
        for each in row["positions"]:
            assert each["entriesBefore"] + 1 + each["entriesAfter"] == row["entries"] == 9

    @pytest.mark.usefixtures("stuck")
    def test_the_ruler_shows_what_is_readable(self, run: Any) -> None:
        """Two thirds of nine entries are; the bar moves to the right from line to line."""
        lines = run("topics", "positions", "orders").out.splitlines()[3:]
        rulers = [line.split()[2] for line in lines]
        assert [line.split()[0] for line in lines] == ["1:0", "1:1", "1:5", "1:6", "1:8"]
        places = [ruler.index("|") for ruler in rulers]
        assert places == sorted(places)
        assert {len(ruler) for ruler in rulers} == {topic_positions.RULER}
        assert all(set(ruler[places[-1] + 1 :]) <= {"-"} for ruler in rulers)
        assert lines[2].endswith("read by billing; maxReadPosition")

    @pytest.mark.parametrize("entries", [0, 1, 2, 5])
    def test_ledgers_are_landmarks_too(self, run: Any, path: Path, entries: int) -> None:
        """Of an empty topic `1:-1` is the only position."""
        run("topics", "create", "orders", "--ledger-entries", "2")
        with Store.open(path) as store:
            for _ in range(entries):
                store.create_producer("orders").send(b"x")
        row = run("topics", "positions", "orders", "-o", "json").json
        ledgers = [each["position"] for each in row["positions"] if each["kind"] == "ledger"]
        assert ledgers == [f"{number + 1}:0" for number in range((entries + 1) // 2)] or ["1:-1"]
        assert row["positions"][-1]["entriesAfter"] == 0
        assert run("topics", "positions", "orders").status == 0


class TestPeek:
    """`topics peek`."""

    @pytest.mark.usefixtures("stuck")
    def test_nothing_is_consumed(self, run: Any, path: Path) -> None:
        """The same messages again and again, and the data file as it was."""
        before = (path / "data.mdb").read_bytes()
        first = run("topics", "peek", "orders", "-s", "billing", "-o", "json").json
        assert run("topics", "peek", "orders", "-s", "billing", "-o", "json").json == first
        assert (path / "data.mdb").read_bytes() == before
        assert [each["value"] for each in first] == ["plain 2", "plain 3"]
        assert not undeclared(first[0], MESSAGE_FIELDS)

    @pytest.mark.usefixtures("stuck")
    def test_without_a_subscription_it_reads_the_topic(self, run: Any) -> None:
        """From the earliest on, at READ_COMMITTED, unless said otherwise."""
        assert run("topics", "peek", "orders", "-o", "value").out == "plain 0\nplain 1\nplain 2\nplain 3\n"
        assert run("topics", "peek", "orders", "-o", "name", "--from", "1:2").out == "1:2\n1:3\n"
        assert run("topics", "peek", "orders", "-o", "name", "-n", "1").out == "1:0\n"
        assert (
            run("topics", "peek", "orders", "-o", "name", "--from", "@1970-01-01", "-n", "1").out == "1:0\n"
        )
        assert run("topics", "peek", "orders", "-o", "name", "--from", "@9999-01-01").out == ""
        dirty = run(
            "topics",
            "peek",
            "orders",
            "--isolation-level",
            "READ_UNCOMMITTED",
            "--from",
            "1:4",
            "-o",
            "ndjson",
        ).rows
        assert [(each["value"], each["txnState"]) for each in dirty] == [
            ("aborted", "ABORTED"),
            ("open 0", "OPEN"),
            ("open 1", "OPEN"),
            ("later 0", None),
            ("later 1", None),
            (None, None),
            ("second", "OPEN"),
        ]

    @pytest.mark.usefixtures("stuck")
    def test_a_pipe_gets_ndjson_and_a_terminal_a_table(self, run: Any) -> None:
        """As `consume` does."""
        assert run("topics", "peek", "orders").rows[0]["messageId"] == "1:0"
        assert run("topics", "peek", "orders", terminal=True).out.startswith("MESSAGE ID ")

    def test_a_long_value_is_cut_in_the_table_alone(self, run: Any, path: Path) -> None:
        """The table says how long it is."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x" * 5000, key=b"\xff\x00")
        out = run("topics", "peek", "orders", "-o", "table").out
        assert max(len(line) for line in out.splitlines()) < 200
        assert "x... (4.9 KiB)" in out
        assert "base64:/wA=" in out
        assert run("topics", "peek", "orders").rows[0]["value"] == "x" * 5000

    def test_a_value_cannot_drive_the_terminal(self, run: Any, path: Path) -> None:
        """Stored escape sequences come out written out."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"\x1b[2Jgone\x07\nline", key=b"\xc2\x9b31m")
        out = run("topics", "peek", "orders", "-o", "table", terminal=True).out
        assert "\\x1b[2Jgone\\x07\\nline" in out
        assert len(out.splitlines()) == 2
        assert out.replace("\n", "").isprintable()

    @pytest.mark.usefixtures("stuck")
    def test_a_subscription_brings_its_own_place_and_level(self, run: Any) -> None:
        """Naming another is bad input, not ignored."""
        for words in (("--from", "earliest"), ("--isolation-level", "read-committed")):
            outcome = run("topics", "peek", "orders", "-s", "billing", *words)
            assert outcome.status == 2, outcome

    @pytest.mark.usefixtures("stuck")
    def test_an_unknown_subscription_is_not_found(self, run: Any) -> None:
        """And those that there are are named."""
        outcome = run("topics", "peek", "orders", "-s", "bills", "-o", "json")
        assert outcome.status == 3
        assert "billing" in outcome.error["hint"]

    def test_nothing_visible_is_success(self, run: Any) -> None:
        """An empty document of each kind."""
        run("topics", "create", "orders")
        assert run("topics", "peek", "orders", "-o", "json").json == []
        assert run("topics", "peek", "orders").out == ""
        assert run("topics", "peek", "orders", "-o", "table").err.startswith("txnctl: nothing")


class TestLog:
    """`topics log`."""

    def test_markers_and_states_are_shown(self, run: Any, stuck: dict[str, str]) -> None:
        """Every entry, in order, as it is stored."""
        rows = run("topics", "log", "orders", "-o", "json").json
        assert not undeclared(rows[0], log.ENTRIES)
        assert [
            (each["position"], each["kind"], each["messages"], each["txnId"], each["txnState"])
            for each in rows
        ] == [
            *[(f"1:{number}", "messages", 1, None, None) for number in range(4)],
            ("1:4", "messages", 1, stuck["aborted"], "ABORTED"),
            ("1:5", "abort", 0, stuck["aborted"], "ABORTED"),
            ("1:6", "messages", 2, stuck["first"], "OPEN"),
            ("1:7", "messages", 3, None, None),
            ("1:8", "messages", 1, stuck["second"], "OPEN"),
        ]
        assert rows[5]["producerName"] is None
        assert rows[0]["producerName"] == "loader"
        assert len(run("topics", "log", "orders").out.splitlines()) == 10

    @pytest.mark.usefixtures("stuck")
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("1:3", ["1:3"]),
            ("1:3..1:5", ["1:3", "1:4", "1:5"]),
            ("1:7..", ["1:7", "1:8"]),
            ("..1:1", ["1:0", "1:1"]),
            ("1:7:2..", ["1:7", "1:8"]),
            ("earliest..1:0", ["1:0"]),
            ("..earliest", []),
            ("latest..", []),
            ("-2", ["1:7", "1:8"]),
            ("-9999", [f"1:{number}" for number in range(9)]),
            ("@1970-01-01..1:0", ["1:0"]),
            ("..@1970-01-01", []),
            ("@9999-01-01", []),
            ("5:0..", []),
        ],
    )
    def test_a_range_says_which(self, run: Any, words: str, expected: list[str]) -> None:
        """The grammar of ranges, both ends included."""
        assert run("topics", "log", "orders", "--range", words, "-o", "name").out.split() == expected

    def test_the_newest_are_counted_over_ledgers(self, run: Any, path: Path) -> None:
        """A ledger that has fewer than asked for is taken whole."""
        run("topics", "create", "orders", "--ledger-entries", "3")
        with Store.open(path) as store:
            for number in range(8):
                store.create_producer("orders").send(b"%d" % number)
        assert run("topics", "log", "orders", "--range", "-3", "-o", "name").out.split() == [
            "2:2",
            "3:0",
            "3:1",
        ]
        assert run("topics", "log", "orders", "--range", "-5", "-o", "name").out.split()[0] == "2:0"
        assert run("topics", "log", "orders", "--range", "2:1..3:0", "-o", "name").out.split() == [
            "2:1",
            "2:2",
            "3:0",
        ]

    def test_a_time_begins_at_the_first_entry_since_then(self, run: Any, path: Path) -> None:
        """In whatever ledger that is."""
        run("topics", "create", "orders", "--ledger-entries", "2")
        with Store.open(path) as store:
            for number in range(5):
                store.create_producer("orders").send(b"%d" % number)
        rows = run("topics", "log", "orders", "-o", "json").json
        for row in rows:
            time = row["publishTimeMs"]
            expected = [each["position"] for each in rows if each["publishTimeMs"] >= time]
            assert run("topics", "log", "orders", "--range", f"@{time}", "-o", "name").out.split() == expected
            upto = [each["position"] for each in rows if each["publishTimeMs"] <= time]
            assert run("topics", "log", "orders", "--range", f"..@{time}", "-o", "name").out.split() == upto


class TestLastMessageId:
    """`topics last-message-id`."""

    @pytest.mark.usefixtures("stuck")
    def test_each_level_has_its_own(self, run: Any) -> None:
        """Neither a marker nor an aborted message at READ_COMMITTED."""
        assert run("topics", "last-message-id", "orders").out == "1:3\n"
        outcome = run(
            "topics", "last-message-id", "orders", "--isolation-level", "read_uncommitted", "-o", "json"
        )
        assert outcome.json == {
            "topic": "persistent://public/default/orders",
            "name": "orders",
            "isolationLevel": "READ_UNCOMMITTED",
            "subscription": None,
            "messageId": "1:8",
        }
        assert not undeclared(outcome.json, last_message_id.LAST_MESSAGE_ID)

    def test_of_an_empty_topic_there_is_none(self, run: Any) -> None:
        """Null for programs, nothing on standard output for shells."""
        run("topics", "create", "orders")
        outcome = run("topics", "last-message-id", "orders")
        assert (outcome.status, outcome.out.strip()) == (0, "")
        assert "no message" in outcome.err
        assert run("topics", "last-message-id", "orders", "-o", "json").json["messageId"] is None

    def test_the_known_answer(self, run: Any, path: Path) -> None:
        """Section 4 of the semantics: n n n t1 n t2; commit t1; abort t2."""
        run("topics", "create", "t")

        def look() -> tuple[str, str]:
            last = run("topics", "last-message-id", "t").out.strip()
            return last, run("topics", "stats", "t", "-o", "json").json["maxReadPosition"]

        with Store.open(path) as store:
            producer = store.create_producer("t")
            for _ in range(3):
                producer.send(b"n")
            first = store.begin_transaction()
            producer.send(b"1", txn=first)
            producer.send(b"n")
            second = store.begin_transaction()
            producer.send(b"2", txn=second)
        assert look() == ("1:2", "1:2")
        with Store.open(path) as store:
            store.commit_transaction(first)
        assert look() == ("1:4", "1:4")
        with Store.open(path) as store:
            store.admin.transactions.abort_transaction(second)
        assert look() == ("1:4", "1:7")


class TestDelete:
    """`topics delete`."""

    def test_without_a_terminal_it_needs_yes(self, run: Any) -> None:
        """Exit 9, the plan on standard error, and the topic is there."""
        run("topics", "create", "orders")
        outcome = run("topics", "delete", "orders")
        assert (outcome.status, outcome.out) == (9, "")
        assert "topic orders: 0 messages" in outcome.err
        assert run("topics", "list", "-o", "name").out == "orders\n"

    def test_it_deletes_and_leaves_a_record(self, run: Any, path: Path) -> None:
        """With the reason; a topic of that name can be made again, and its ledgers go on counting."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x")
            store.subscribe("orders", "billing").close()
        row = run("topics", "delete", "orders", "--yes", "--reason", "moved", "-o", "json").json
        assert not undeclared(row, delete.DELETED)
        assert (row["messages"], row["subscriptions"], row["dryRun"]) == (1, ["billing"], False)
        with Store.open(path) as store:
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "moved"
        assert run("topics", "list", "-o", "json").json == []
        run("topics", "create", "orders")
        with Store.open(path) as store:
            assert str(store.create_producer("orders").send(b"x")) == "2:0"

    def test_a_dry_run_has_the_numbers_of_the_real_one(self, run: Any, path: Path) -> None:
        """And changes nothing, not one byte."""
        run("topics", "create", "orders")
        with Store.open(path) as store:
            store.create_producer("orders").send_batch([b"x"] * 7)
        before = (path / "data.mdb").read_bytes()
        dry = run("topics", "delete", "orders", "--dry-run", "-o", "json").json
        assert (path / "data.mdb").read_bytes() == before
        shown = run("topics", "delete", "orders", "--dry-run").out
        assert shown.startswith("DRY RUN: nothing was changed.\n")
        real = run("topics", "delete", "orders", "--yes", "-o", "json").json
        assert dry.pop("dryRun")
        assert not real.pop("dryRun")
        assert dry == real

    def test_what_holds_it_refuses_and_force_overrides(self, run: Any, stuck: dict[str, str]) -> None:
        """Open transactions are named; with --force they are aborted first."""
        refused = run("topics", "delete", "orders", "--yes", "-o", "json")
        assert refused.status == 4
        assert refused.error["code"] == "object-held"
        assert stuck["first"] in refused.error["message"]
        assert run("topics", "delete", "orders", "--dry-run").status == 4
        row = run("topics", "delete", "orders", "--yes", "--force", "-o", "json").json
        assert row["transactionsAborted"] == [stuck["first"], stuck["second"]]
