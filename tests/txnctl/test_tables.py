"""`txnctl tables`: tables, values, scans and reports, in every format."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.limits import (
    FINALIZE_INLINE_MAX,
    TABLE_HOLDERS_MAX,
    TABLE_KEY_BYTES_MAX,
    TABLE_VALUE_BYTES_MAX,
)
from txnctl.commands.tables import delete, history, intents, stats, versions, write
from txnctl.fields import table as table_fields
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")

BINARY = b"\xff\xfe\x00"
HOSTILE = b"a\x1b[31mred\n\xc2\x9b"


@pytest.fixture
def path(path: Path) -> Path:
    """A store with three accounts, which every command is told of, verified in full when the test is over."""
    with Store.open(path) as store:
        store.create_table("accounts")
        for number in (1, 2, 3):
            store.table("accounts").put(b"B%d" % number, b"%d00" % number)
    return path


def files(path: Path) -> dict[str, bytes]:
    """What is in the store's directory, but for LMDB's reader table, which every reader writes into."""
    return {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock.mdb"}


def encoded(value: bytes) -> str:
    """Base64, as JSON shows bytes that are not UTF-8."""
    return base64.b64encode(value).decode()


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_nothing_is_success(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty array, or a note that says how to begin."""
        Store.create(tmp_path / "empty")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "empty"))
        assert run("tables", "list", "-o", "json").json == []
        outcome = run("tables", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "tables create" in outcome.err

    def test_a_table_is_created_once(self, run: Any) -> None:
        """The second time it exists already."""
        assert run("tables", "create", "limits", "-o", "json").json == {"table": "limits"}
        assert run("tables", "create", "limits").status == 4
        assert run("tables", "list", "-o", "name").out == "accounts\nlimits\n"

    @pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "x" * 129, "größe", "a\x1b[31m"], ids=ascii)
    @pytest.mark.parametrize("verb", ["create", "show", "stats", "scan", "export", "delete"])
    def test_a_hostile_name_is_bad_input(self, run: Any, path: Path, verb: str, name: str) -> None:
        """Exit 2, nothing changed, and nothing that could drive a terminal."""
        before = files(path)
        outcome = run("tables", verb, "-o", "ndjson" if verb == "export" else "json", "--", name)
        assert (outcome.status, outcome.out, outcome.error["code"]) == (2, "", "invalid-name")
        assert outcome.err.rstrip("\n").isprintable()
        assert files(path) == before

    @pytest.mark.parametrize(
        "words",
        [
            ("show", "account"),
            ("stats", "account"),
            ("get", "account", "B1"),
            ("put", "account", "B1", "1"),
            ("rm", "account", "B1"),
            ("scan", "account"),
            ("versions", "account", "B1"),
            ("intents", "account"),
            ("history", "account"),
            ("export", "account"),
            ("import", "account"),
            ("delete", "account", "--yes"),
        ],
        ids=lambda words: words[0],
    )
    def test_an_unknown_table_is_not_found_and_a_near_one_is_named(
        self, run: Any, words: tuple[str, ...]
    ) -> None:
        """Exit 3 with a hint that can be followed."""
        outcome = run("tables", *words)
        assert (outcome.status, outcome.out) == (3, "")
        assert "accounts" in outcome.err

    def test_list_show_and_stats_count_alike(self, run: Any) -> None:
        """Every fact is declared, and the table has the numbers of JSON."""
        (row,) = run("tables", "list", "-o", "json").json
        assert not undeclared(row, table_fields.TABLE)
        assert (row["table"], row["keys"], row["versions"], row["intents"]) == ("accounts", 3, 0, 0)
        assert row["retentionMs"] == 3_600_000
        assert run("tables", "stats", "accounts", "-o", "json").json.keys() >= row.keys()
        shown = run("tables", "show", "accounts", "-o", "json").json
        assert shown.items() <= {**row, "asOfAt": shown["asOfAt"], "asOfMs": shown["asOfMs"]}.items()
        assert run("tables", "list").out.splitlines()[1].split()[:4] == ["accounts", "3", "0", "0"]
        assert "3 keys" in run("tables", "stats", "accounts").out

    def test_stats_lead_to_who_holds_keys(self, run: Any) -> None:
        """Where there are write intents the next command is named."""
        assert "Next:" not in run("tables", "stats", "accounts").out
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        assert "Next: txnctl tables intents accounts" in run("tables", "stats", "accounts").out

    def test_stats_say_who_holds_keys(self, run: Any, path: Path) -> None:
        """Open transactions, the oldest first, each with its intents; those of ended ones are counted apart."""
        for _ in range(2):
            run("transactions", "begin", "--priority", "high")
        for txn, key in (("0:5", "B1"), ("0:4", "B2"), ("0:4", "new"), ("0:4", "new")):
            assert run("tables", "put", "accounts", key, "1", "--txn", txn).status == 0
        with Store.open(path) as store:
            done = store.begin_transaction()
            for number in range(FINALIZE_INLINE_MAX + 1):
                store.table("accounts").put(b"~%d" % number, b"", txn=done)
            store.commit_transaction(done)
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert not undeclared(row, stats.STATS)
        assert (row["intents"], row["heldIntents"], row["ongoingTxnCount"]) == (68, 3, 2)
        assert [(each["txnId"], each["intents"], each["priority"]) for each in row["holders"]] == [
            ("0:4", 2, "high"),
            ("0:5", 1, "high"),
        ]
        assert not any(undeclared(each, stats.HOLDERS) for each in row["holders"])
        lines = run("tables", "stats", "accounts").out.splitlines()
        assert (
            "  intents     68: 3 held by 2 open transactions, 65 left by ended ones, to be finalised" in lines
        )
        assert [line.split()[:2] for line in lines if "detached" in line] == [["0:4", "2"], ["0:5", "1"]]
        for txn in ("0:4", "0:5"):
            run("transactions", "abort", txn)
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert (row["intents"], row["heldIntents"], row["ongoingTxnCount"], row["holders"]) == (65, 0, 0, [])
        assert "Next: txnctl store gc" in run("tables", "stats", "accounts").out

    def test_stats_name_the_oldest_holders_and_count_the_others(self, run: Any, path: Path) -> None:
        """Of thirty, twenty are named; whose other table's keys they hold is not in it."""
        with Store.open(path) as store:
            store.create_table("other")
            txns = [store.begin_transaction() for _ in range(30)]
            for number, txn in enumerate(reversed(txns)):
                store.table("accounts").put(b"k%d" % number, b"", txn=txn)
            store.table("other").put(b"k", b"", txn=store.begin_transaction())
        row = run("tables", "stats", "accounts", "-o", "json").json
        assert [each["txnId"] for each in row["holders"]] == [str(txn) for txn in txns[:TABLE_HOLDERS_MAX]]
        assert (row["ongoingTxnCount"], row["heldIntents"]) == (30, 30)
        assert "  and 10 more" in run("tables", "stats", "accounts").out.splitlines()
        assert run("tables", "stats", "other", "-o", "json").json["ongoingTxnCount"] == 1

    def test_deleting_shows_its_plan_and_asks(self, run: Any, path: Path) -> None:
        """Without --yes and a terminal: exit 9, the plan on stderr, nothing done; with it, as the dry run said."""
        before = (path / "data.mdb").read_bytes()
        dry = run("tables", "delete", "accounts", "--dry-run", "-o", "json").json
        refused = run("tables", "delete", "accounts")
        assert (refused.status, refused.out) == (9, "")
        assert "removes   table accounts: 3 rows" in refused.err
        assert (path / "data.mdb").read_bytes() == before
        done = run("tables", "delete", "accounts", "--yes", "--reason", "moved", "-o", "json").json
        assert not undeclared(done, delete.DELETED)
        assert dry == {**done, "dryRun": True}
        assert run("tables", "list", "-o", "json").json == []
        (change,) = run("audit", "list", "-n", "1", "-o", "json").json
        assert (change["action"], change["target"], change["reason"]) == (
            "tables delete",
            "accounts",
            "moved",
        )

    def test_a_table_that_is_written_to_is_kept(self, run: Any) -> None:
        """While a transaction holds keys of it; --force aborts that first."""
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        assert run("tables", "delete", "accounts", "--yes").status == 4
        forced = run("tables", "delete", "accounts", "--yes", "--force", "-o", "json").json
        assert forced["transactionsAborted"] == ["0:4"]
        assert run("transactions", "commit", "0:4").status == 4


class TestEmpty:
    """A table without rows."""

    def test_a_note_says_that_nothing_is_there(self, run: Any) -> None:
        """On standard error, for people; the exit code is that of success, and other formats say nothing."""
        run("tables", "create", "empty")
        outcome = run("tables", "scan", "empty")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no rows" in outcome.err
        assert "no rows" in run("tables", "scan", "accounts", "--prefix", "X").err
        assert run("tables", "scan", "accounts").err == ""
        for output, shown in (("json", []), ("ndjson", None), ("name", None), ("value", None)):
            quiet = run("tables", "scan", "empty", "-o", output)
            assert (quiet.status, quiet.err) == (0, "")
            assert quiet.json == shown if output == "json" else quiet.out == ""


class TestValues:
    """`get`, `put`, `rm`."""

    def test_get_prints_the_value_alone(self, run: Any) -> None:
        """Its bytes and a newline, or no newline."""
        assert run("tables", "get", "accounts", "B1").out == "100\n"
        assert run("tables", "get", "accounts", "B1", "-n").out == "100"

    def test_in_json_it_is_an_object(self, run: Any) -> None:
        """With version, time and transaction, and -o name prints the version."""
        row = run("tables", "get", "accounts", "B2", "-o", "json").json
        assert (row["table"], row["key"], row["value"], row["txnId"]) == ("accounts", "B2", "200", "0:2")
        assert int(row["version"]) // 1_000_000 == row["versionMs"]
        assert not undeclared(row, (table_fields.NAME, *table_fields.ROW))
        assert run("tables", "get", "accounts", "B2", "-o", "name").out == f"{row['version']}\n"
        assert row["version"] in run("tables", "get", "accounts", "B2", "-o", "table").out

    def test_a_key_without_a_value_is_not_found(self, run: Any) -> None:
        """Exit 3, nothing on stdout; never written, or deleted."""
        assert run("tables", "rm", "accounts", "B1").status == 0
        for key in ("B1", "B9"):
            outcome = run("tables", "get", "accounts", key, "-o", "json")
            assert (outcome.status, outcome.out, outcome.error["code"]) == (3, "", "key-not-found")
            assert outcome.error["details"] == {"table": "accounts", "key": key}

    @pytest.mark.parametrize(
        "value",
        [b"", b"\n", b"x\n", BINARY, HOSTILE, bytes(range(256)) * 20],
        ids=["empty", "newline", "line", "binary", "hostile", "all bytes"],
    )
    def test_any_bytes_come_back(self, run: Any, value: bytes) -> None:
        """From standard input, byte by byte, with and without `-`; JSON has Base64 where it is no text."""
        for words in ((), ("-",)):
            assert run("tables", "put", "accounts", "any", *words, stdin=value).status == 0
            assert run("tables", "get", "accounts", "any").out_bytes == value + b"\n"
            assert run("tables", "get", "accounts", "any", "--no-newline").out_bytes == value
        row = run("tables", "get", "accounts", "any", "-o", "json").json
        is_text = value.decode("utf-8", "replace").encode() == value
        found = {name: row[name] for name in ("value", "valueBase64") if name in row}
        assert found == ({"value": value.decode()} if is_text else {"valueBase64": encoded(value)})

    def test_a_typed_value_leaves_standard_input_alone(self, run: Any) -> None:
        """`while read k v; do txnctl tables put t "$k" "$v"; done` works."""
        assert run("tables", "put", "accounts", "B4", "400", stdin=b"not this").status == 0
        assert run("tables", "get", "accounts", "B4").out == "400\n"

    @pytest.mark.parametrize("number", ["-100", "-05", "-1e3"])
    def test_negative_numbers_are_values_and_keys(self, run: Any, number: str) -> None:
        """They are no options, wherever the options stand; what is no option and no number is refused."""
        row = run("tables", "put", "accounts", number, number, "--if-absent", "-o", "json").json
        assert row["key"] == number
        assert run("tables", "put", "-o", "json", "accounts", "B1", number, "--if-version", "1").status == 4
        assert run("tables", "get", "accounts", number).out == f"{number}\n"
        assert run("tables", "versions", "accounts", number, "-o", "json").json[0]["value"] == number
        assert run("tables", "put", "accounts", "B1", "--if-abzent").status == 2
        assert run("tables", "put", "accounts", "B1", "--", "--if-abzent").status == 0
        assert run("tables", "get", "accounts", "B1").out == "--if-abzent\n"
        assert run("tables", "rm", "accounts", number).status == 0

    def test_a_key_may_be_any_bytes(self, run: Any) -> None:
        """As Base64, also one with a zero byte; what is not Base64 is bad input."""
        key = encoded(BINARY)
        row = run("tables", "put", "accounts", key, "x", "--key-base64", "-o", "json").json
        assert row["keyBase64"] == key
        assert "key" not in row
        assert run("tables", "get", "accounts", key, "--key-base64").out == "x\n"
        assert (
            run("tables", "versions", "accounts", key, "--key-base64", "-o", "json").json[0]["value"] == "x"
        )
        assert run("tables", "rm", "accounts", key, "--key-base64").status == 0
        for words in (("get", "accounts", "B1="), ("scan", "accounts", "--prefix", "é")):
            assert run("tables", *words, "--key-base64").status == 2

    def test_a_key_that_is_not_utf_8_can_be_typed(self, run: Any) -> None:
        """The bytes of the word are the key."""
        assert run("tables", "put", "accounts", "\udcff", "x").status == 0
        row = run("tables", "get", "accounts", "\udcff", "-o", "json").json
        assert row["keyBase64"] == encoded(b"\xff")

    def test_bounds(self, run: Any) -> None:
        """Keys of 1 to 400 bytes, values of up to 5 MiB; more is bad input, typed or through a pipe."""
        longest = "k" * TABLE_KEY_BYTES_MAX
        assert run("tables", "put", "accounts", longest, "x").status == 0
        for key in ("", f"{longest}k"):
            assert run("tables", "put", "accounts", key, "x").status == 2
        largest = b"v" * TABLE_VALUE_BYTES_MAX
        assert run("tables", "put", "accounts", "large", stdin=largest).status == 0
        assert run("tables", "get", "accounts", "large").out_bytes == largest + b"\n"
        assert run("tables", "put", "accounts", "large", "-", stdin=largest + b"v").status == 2
        assert run("tables", "get", "accounts", "large").out_bytes == largest + b"\n"

    def test_a_put_says_which_version_it_made(self, run: Any) -> None:
        """-o name prints it alone, for --if-version."""
        outcome = run("tables", "put", "accounts", "B1", "101", "-o", "name")
        assert outcome.out == run("tables", "get", "accounts", "B1", "-o", "name").out
        row = run("tables", "put", "accounts", "B1", "102", "-o", "json").json
        assert not undeclared(row, write.WRITTEN)
        assert (row["key"], row["txnId"]) == ("B1", None)
        assert "Put B1 in accounts" in run("tables", "put", "accounts", "B1", "103").out

    def test_conditions(self, run: Any) -> None:
        """--if-version and --if-absent hold or it is a conflict, exit 4, and nothing changes."""
        version = run("tables", "get", "accounts", "B1", "-o", "name").out.strip()
        assert run("tables", "put", "accounts", "B1", "7", "--if-version", version).status == 0
        for words in (
            ("put", "accounts", "B1", "8", "--if-version", version),
            ("put", "accounts", "B1", "8", "--if-absent"),
            ("rm", "accounts", "B1", "--if-version", version),
            ("rm", "accounts", "B9", "--if-version", version),
        ):
            outcome = run("tables", *words, "-o", "json")
            assert (outcome.status, outcome.error["code"]) == (4, "condition-failed")
        assert run("tables", "get", "accounts", "B1").out == "7\n"
        assert run("tables", "put", "accounts", "B9", "9", "--if-absent").status == 0
        assert run("tables", "put", "accounts", "B9", "9", "--if-absent", "--if-version", "1").status == 2

    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (("put", "accounts", "B1", "8", "--if-absent"), 4),
            (("rm", "accounts", "B9"), 3),
        ],
        ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
    )
    def test_a_refused_change_leaves_no_transaction_behind(
        self, start: Any, run: Any, words: tuple[str, ...], status: int
    ) -> None:
        """Neither open nor ended, in a process of its own that knows nothing of earlier ones (invariant 24)."""
        before = [row["txnId"] for row in run("transactions", "list", "--ended", "-o", "json").json]
        command = start("tables", *words)
        command.communicate()
        assert command.returncode == status
        assert [row["txnId"] for row in run("transactions", "list", "--ended", "-o", "json").json] == before
        assert run("transactions", "list", "-o", "json").json == []

    def test_deleting(self, run: Any) -> None:
        """What is not there cannot be deleted, exit 3, unless that is well."""
        assert run("tables", "rm", "accounts", "B1").out.startswith("Deleted B1 from accounts")
        assert run("tables", "rm", "accounts", "B1").status == 3
        assert run("tables", "rm", "accounts", "B1", "--missing-ok").status == 0
        assert run("tables", "scan", "accounts", "-o", "name").out == "B2\nB3\n"

    def test_a_value_cannot_drive_the_terminal(self, run: Any) -> None:
        """Nor can a key: on a terminal they are written out."""
        run("tables", "put", "accounts", "any", stdin=HOSTILE)
        run("tables", "put", "accounts", HOSTILE.decode(), "x")
        for words in (
            ("get", "accounts", "any"),
            ("scan", "accounts"),
            ("scan", "accounts", "-o", "value"),
            ("scan", "accounts", "-o", "name"),
            ("scan", "accounts", "-o", "ndjson"),
            ("export", "accounts"),
            ("export", "accounts", "-o", "csv"),
            ("versions", "accounts", HOSTILE.decode()),
            ("get", "accounts", HOSTILE.decode(), "-o", "table"),
            ("put", "accounts", HOSTILE.decode(), "y"),
        ):
            outcome = run("tables", *words, terminal=True)
            assert outcome.status == 0, outcome
            assert outcome.out.replace("\n", "").isprintable(), (words, outcome)


class TestScan:
    """`scan`."""

    def test_rows_come_in_the_order_of_their_keys(self, run: Any) -> None:
        """In every format the same ones."""
        rows = run("tables", "scan", "accounts", "-o", "json").json
        assert [(row["key"], row["value"], row["txnId"]) for row in rows] == [
            ("B1", "100", "0:1"),
            ("B2", "200", "0:2"),
            ("B3", "300", "0:3"),
        ]
        assert not undeclared(rows[0], table_fields.ROW)
        assert run("tables", "scan", "accounts", "-o", "ndjson").rows == rows
        assert run("tables", "scan", "accounts", "-o", "name").out == "B1\nB2\nB3\n"
        assert run("tables", "scan", "accounts", "-o", "value").out == "100\n200\n300\n"
        heading, *lines = run("tables", "scan", "accounts").out.splitlines()
        assert heading.split() == ["KEY", "WRITTEN", "TXN", "VERSION", "VALUE"]
        assert [line.split() for line in lines] == [
            [row["key"], row["versionAt"], row["txnId"], row["version"], row["value"]] for row in rows
        ]

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("--start", "B2"), ["B2", "B3"]),
            (("--end", "B2"), ["B1"]),
            (("--start", "B2", "--end", "B3"), ["B2"]),
            (("--start", "B3", "--end", "B1"), []),
            (("--prefix", "B"), ["B1", "B2", "B3"]),
            (("--prefix", "B2"), ["B2"]),
            (("--prefix", "C"), []),
            (("--prefix", "QjI=", "--key-base64"), ["B2"]),
            (("--reverse",), ["B3", "B2", "B1"]),
            (("--reverse", "-n", "1"), ["B3"]),
            (("--limit", "2"), ["B1", "B2"]),
            (("--reverse", "--end", "B3"), ["B2", "B1"]),
        ],
        ids=" ".join,
    )
    def test_ranges(self, run: Any, words: tuple[str, ...], found: list[str]) -> None:
        """By prefix, from a key on, below a key, both directions, with a limit."""
        assert [row["key"] for row in run("tables", "scan", "accounts", *words, "-o", "json").json] == found

    @pytest.mark.parametrize("words", [("-n", "0"), ("-n", "x"), ("--limit", "-1")], ids=" ".join)
    def test_a_limit_is_a_number(self, run: Any, words: tuple[str, ...]) -> None:
        """Exit 2."""
        assert run("tables", "scan", "accounts", *words).status == 2

    def test_an_empty_range_is_success(self, run: Any) -> None:
        """An empty array, or nothing."""
        assert run("tables", "scan", "accounts", "--prefix", "Z", "-o", "json").json == []
        assert run("tables", "scan", "accounts", "--prefix", "Z").out == ""

    def test_many_rows_come_in_line(self, run: Any, path: Path) -> None:
        """One heading, every key once, though they are read and printed in pages."""
        with Store.open(path) as store:
            store.create_table("many")
            store.table("many").import_rows((b"%05d" % number, b"x" * 20) for number in range(2500))
        lines = run("tables", "scan", "many").out.splitlines()
        assert len(lines) == 2501
        assert [line.split()[0] for line in lines[1:]] == [f"{number:05d}" for number in range(2500)]

    def test_binary_keys_have_a_line_each(self, run: Any) -> None:
        """-o name prints what is not text written out; JSON has the bytes."""
        run("tables", "put", "accounts", encoded(BINARY), "x", "--key-base64")
        assert run("tables", "scan", "accounts", "-o", "name").out.splitlines()[-1] == "\\xff\\xfe\\x00"
        assert run("tables", "scan", "accounts", "-o", "json").json[-1]["keyBase64"] == encoded(BINARY)


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_versions_of_a_key(self, run: Any) -> None:
        """The newest first, deletions and an open transaction's write included."""
        run("tables", "rm", "accounts", "B1")
        run("tables", "put", "accounts", "B1", "10")
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "B1", "11", "--txn", txn)
        rows = run("tables", "versions", "accounts", "B1", "-o", "json").json
        assert not undeclared(rows[0], versions.FIELDS)
        assert [(row["value"], row["state"], row["intent"], row["deleted"]) for row in rows] == [
            ("11", "OPEN", True, False),
            ("10", "COMMITTED", False, False),
            (None, "COMMITTED", False, True),
            ("100", "COMMITTED", False, False),
        ]
        assert [int(row["version"]) for row in rows] == sorted([int(row["version"]) for row in rows])[::-1]
        lines = run("tables", "versions", "accounts", "B1").out.splitlines()
        assert [line.split()[-1] for line in lines] == ["VALUE", "11", "10", "(deleted)", "100"]

    def test_versions_of_a_key_that_never_was(self, run: Any) -> None:
        """An empty list, and a note."""
        assert run("tables", "versions", "accounts", "B9", "-o", "json").json == []
        assert "keeps nothing under B9" in run("tables", "versions", "accounts", "B9").err

    def test_intents_say_who_holds_which_keys(self, run: Any) -> None:
        """Of one table, or of all."""
        run("tables", "create", "limits")
        run("transactions", "begin", "--priority", "high")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "rm", "accounts", "B2", "--txn", "0:4")
        run("tables", "put", "limits", encoded(BINARY), "1", "--key-base64", "--txn", "0:4")
        rows = run("tables", "intents", "-o", "json").json
        assert not undeclared(rows[0], intents.INTENTS)
        assert [(row["table"], row.get("key"), row["deleted"], row["state"]) for row in rows] == [
            ("accounts", "B1", False, "OPEN"),
            ("accounts", "B2", True, "OPEN"),
            ("limits", None, False, "OPEN"),
        ]
        held = {(row["txnId"], row["priority"], row["ownerState"]) for row in rows}
        assert held == {("0:4", "high", "detached")}
        (row,) = run("tables", "intents", "limits", "-o", "json").json
        assert row == {**rows[2], "ageMs": row["ageMs"]}
        assert run("tables", "intents", "-o", "name").out == "B1\nB2\n\\xff\\xfe\\x00\n"
        assert len(run("tables", "intents", "-n", "1").out.splitlines()) == 2
        run("transactions", "commit", "0:4")
        assert "there are no write intents in accounts" in run("tables", "intents", "accounts").err

    def test_history_names_loser_winner_and_key(self, run: Any) -> None:
        """The newest first, of one table or of all."""
        run("tables", "create", "limits")
        for table, key in (("accounts", "B1"), ("limits", "L")):
            txn = run("transactions", "begin").out.strip()
            run("tables", "put", table, key, "1", "--txn", txn)
            run("tables", "put", table, key, "2")
        rows = run("tables", "history", "-o", "json").json
        assert not undeclared(rows[0], history.CONFLICTS)
        assert [(row["kind"], row["loser"], row["winner"], row["table"], row["key"]) for row in rows] == [
            ("push", "0:6", "0:7", "limits", "L"),
            ("push", "0:4", "0:5", "accounts", "B1"),
        ]
        assert run("tables", "history", "accounts", "-o", "json").json == rows[1:]
        assert run("tables", "history", "-n", "1", "-o", "json").json == rows[:1]
        line = run("tables", "history", "accounts").out.splitlines()[1]
        assert line.split()[1:] == ["push", "0:4", "0:5", "accounts", "B1"]
        run("tables", "create", "quiet")
        assert "no conflicts over keys of quiet" in run("tables", "history", "quiet").err

    def test_a_transaction_shows_its_keys(self, run: Any) -> None:
        """In `show`, `list` and the dry run of `abort`, whose numbers are those of the real one."""
        run("transactions", "begin", "--priority", "low")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "put", "accounts", encoded(BINARY), "1", "--key-base64", "--txn", "0:4")
        row = run("transactions", "show", "0:4", "-o", "json").json
        (part,) = row["parts"]
        assert (part["kind"], part["table"], part["keys"]) == ("table", "accounts", 2)
        assert part["keyList"] == [{"key": "B1"}, {"keyBase64": encoded(BINARY)}]
        assert (row["isolation"], row["priority"], row["tables"]) == ("SERIALIZABLE", "low", ["accounts"])
        shown = run("transactions", "show", "0:4").out
        assert "holds keys of table accounts  2 keys  B1, \\xff\\xfe\\x00" in shown
        assert "priority low" in shown
        assert "SERIALIZABLE, low" in run("transactions", "list").out
        dry = run("transactions", "abort", "0:4", "--dry-run", "-o", "json").json
        lines = [line.split() for line in run("transactions", "abort", "0:4", "--dry-run").out.splitlines()]
        assert ["releases", "2", "write", "intents", "accounts"] in lines
        real = run("transactions", "abort", "0:4", "-o", "json").json
        assert dry["effects"] == real["effects"]
        assert real["effects"][0]["intents"] == 2
        assert run("tables", "scan", "accounts", "-o", "value").out == "100\n200\n300\n"

    def test_a_commit_says_what_it_wrote(self, run: Any) -> None:
        """Keys by table, beside messages."""
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "B1", "1", "--txn", txn)
        run("tables", "rm", "accounts", "B2", "--txn", txn)
        assert run("transactions", "commit", txn).out == f"Committed {txn}: 2 keys of accounts.\n"
        assert run("tables", "scan", "accounts", "-o", "value").out == "1\n300\n"

    def test_a_loser_is_told_to_whom_and_over_which_key(self, run: Any) -> None:
        """At its next operation, at its commit, and in `transactions show`."""
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        run("tables", "put", "accounts", "B1", "2")
        for words in (("tables", "get", "accounts", "B2", "--txn", "0:4"), ("transactions", "commit", "0:4")):
            outcome = run(*words, "-o", "json")
            assert (outcome.status, outcome.out) == (4, "")
            assert (outcome.error["code"], outcome.error["retryable"]) == ("lost-conflict", True)
            assert "B1" in outcome.error["message"]
            assert "0:5" in outcome.error["message"]
            assert "new transaction" in outcome.error["hint"]
        row = run("transactions", "show", "0:4", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "lost-conflict")
        conflict = row["conflict"]
        assert (conflict["winner"], conflict["table"], conflict["key"]) == ("0:5", "accounts", "B1")
        assert "0:5, over key B1 of table accounts" in run("transactions", "show", "0:4").out

    def test_intents_that_wait_to_be_finalised(self, run: Any, path: Path) -> None:
        """A large commit leaves them, `intents` lists them, `gc` makes values of them; the answers stay the same."""
        with Store.open(path) as store:
            txn = store.begin_transaction()
            for number in range(FINALIZE_INLINE_MAX + 1):
                store.table("accounts").put(b"N%05d" % number, b"1", txn=txn)
            store.commit_transaction(txn)
        rows = run("tables", "intents", "accounts", "-o", "json").json
        assert {row["state"] for row in rows} == {"COMMITTED"}
        assert run("tables", "get", "accounts", "N00000").out == "1\n"
        done = run("store", "gc", "-o", "json").json
        assert done["intentsFinalized"] == len(rows)
        assert run("tables", "intents", "accounts", "-o", "json").json == []
        assert run("tables", "get", "accounts", "N00000").out == "1\n"


class TestCompletion:
    """The names of tables, open transactions, named constants."""

    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("txnctl tables get acc", ["accounts"]),
            ("txnctl tables scan ", ["accounts", "limits"]),
            ("txnctl tables put accounts B1 1 --txn ", ["0:4"]),
            ("txnctl tables put accounts B1 -1 --txn ", ["0:4"]),
            ("txnctl transactions begin --isolation ser", ["serializable"]),
            ("txnctl transactions begin --priority h", ["highest", "high"]),
            ("txnctl tables get accounts B1 --check ", ["minimal", "full", "none"]),
        ],
    )
    def test_what_is_offered(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
    ) -> None:
        """As the scripts ask for it."""
        run("tables", "create", "limits")
        run("transactions", "begin")
        monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_LINE", line)
        assert [each.split("\t")[1] for each in run().out.splitlines() if each] == offered


class TestReading:
    """Commands that only read."""

    @pytest.mark.parametrize(
        "words",
        [
            ("list",),
            ("show", "accounts"),
            ("stats", "accounts"),
            ("get", "accounts", "B1"),
            ("get", "accounts", "B1", "--check", "full"),
            ("get", "accounts", "B2", "--txn", "0:4"),
            ("scan", "accounts"),
            ("scan", "accounts", "--check", "none"),
            ("scan", "accounts", "--txn", "0:4", "-o", "json"),
            ("versions", "accounts", "B1"),
            ("intents",),
            ("history",),
            ("export", "accounts"),
            ("export", "accounts", "--txn", "0:4", "-o", "csv"),
        ],
        ids=" ".join,
    )
    def test_leaves_every_file_as_it_is(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """Byte by byte, beside an open transaction's intents, and in a read-committed transaction too."""
        run("transactions", "begin", "--isolation", "read-committed")
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:5")
        before = files(path)
        assert run("tables", *words).status == 0
        assert files(path) == before
