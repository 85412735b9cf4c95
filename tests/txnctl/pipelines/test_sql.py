"""A SQL statement over topics and tables of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from storage import IsolationLevel, Store
from storage.errors import InvalidValue, RequestTooOld, TopicNotFound
from txnctl.cli.main import main
from txnctl.pipelines.sql import run_statement
from txnctl.pipelines.store_views import NamedRelation, ReadMoment, StoreViews
from txnctl.spark.runtime import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")
Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def bank(store: Store) -> Store:
    """A topic of ten orders of three customers, and a table of a hundred accounts."""
    store.create_topic("orders", ledger_entries_max=2)
    with store.create_producer("orders") as producer:
        for number in range(10):
            producer.send(b"%d" % number, key=b"B%d" % (number % 3))
    store.create_table("accounts")
    store.table("accounts").import_rows((b"B%d" % number, b"%d" % (number * 10)) for number in range(100))
    return store


@pytest.fixture
def ask(spark: SparkSession, bank: Store) -> Iterator[Ask]:
    """Run a statement; its rows. No view is left."""

    def rows(statement: str, *named: NamedRelation, **moment: Any) -> list[tuple[Any, ...]]:
        views = StoreViews(bank, ReadMoment(**moment), {view.name: view for view in named})
        return [tuple(row) for row in run_statement(spark, statement, views).collect()]

    yield rows
    assert spark.catalog.listTables() == []
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_names_of_a_statement_are_topics_and_tables(ask: Ask) -> None:
    """Wherever they stand: in joins, subqueries and common table expressions, whose own names are left alone."""
    joined = (
        "WITH sums AS (SELECT key, count(*) n FROM orders GROUP BY key) "
        "SELECT string(sums.key), n, int(string(value)) FROM sums JOIN accounts USING (key) "
        "WHERE key IN (SELECT key FROM orders WHERE string(value) = '1') ORDER BY 1"
    )
    assert ask(joined) == [("B1", 3, 10)]


def test_a_relation_that_is_read_twice_gives_each_read_its_own_rows(ask: Ask) -> None:
    """Filters are not pushed then: Spark would read both with the filters of one."""
    both = "SELECT value FROM accounts WHERE key = 'B1' UNION ALL SELECT value FROM accounts WHERE key = 'B2'"
    assert [bytes(value) for (value,) in ask(both)] == [b"10", b"20"]
    twice = "WITH a AS (SELECT * FROM accounts) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM a WHERE key < 'B2')"
    assert ask(twice) == [(100, 12)]
    assert ask("SELECT count(*) FROM accounts a JOIN accounts b ON a.key = b.key WHERE a.key = 'B1'") == [
        (1,)
    ]


def test_filters_go_to_the_store_where_a_relation_is_read_once(
    ask: Ask, spark: SparkSession, bank: Store
) -> None:
    """The plan has no filter left, and one partition of the ledger that is asked for."""
    statement = "SELECT value FROM orders WHERE ledgerId = 3 AND key = 'B1'"
    frame = run_statement(spark, statement, StoreViews(bank, ReadMoment()))
    assert "Filter (" not in frame._jdf.queryExecution().executedPlan().toString()
    assert [bytes(row.value) for row in frame.collect()] == [b"4"]
    assert ask("SELECT count(*) FROM accounts WHERE key = 'B7'") == [(1,)]


def test_all_views_are_read_as_of_one_moment(spark: SparkSession, bank: Store, ask: Ask) -> None:
    """Whatever is written between the statement and its action, and while an open transaction holds back."""
    table = bank.table("accounts")
    views = StoreViews(bank, ReadMoment())
    frame = run_statement(
        spark, "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM accounts)", views
    )
    with bank.transaction() as txn:
        table.put(b"later", b"1", txn=txn)
        bank.create_producer("orders").send(b"later", txn=txn)
    assert tuple(frame.collect()[0]) == (10, 100)
    assert ask("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM accounts)") == [(11, 101)]


def test_isolation_texts_and_versions(bank: Store, ask: Ask) -> None:
    """Open messages at READ_UNCOMMITTED, keys and values as text, tables at an earlier version or not at all."""
    txn = bank.begin_transaction()
    with bank.create_producer("orders") as producer:
        producer.send(b"open", txn=txn)
    levels = [ask("SELECT count(*) FROM orders", level=level) for level in IsolationLevel]
    assert sorted(levels) == [[(10,)], [(11,)]]
    bank.admin.transactions.abort_transaction(txn)
    version = bank.table("accounts").get_row(b"B1").version
    bank.table("accounts").put(b"B1", b"changed")
    one = "SELECT key, value FROM accounts WHERE key = 'B1'"
    assert ask(one, as_text=True) == [("B1", "changed")]
    assert ask(one, as_text=True, at=version) == [("B1", "10")]
    with pytest.raises(Exception, match="not kept any more") as error:
        ask(one, at=1_700_000_000_000_000_000)
    assert RequestTooOld.__name__ in str(error.value)


def test_names_that_differ_in_case_alone_have_their_own_rows(
    bank: Store, ask: Ask, spark: SparkSession
) -> None:
    """A topic and a topic, a topic and a table, a name that is given: alone, together, in a subquery."""
    bank.create_topic("Orders")
    with bank.create_producer("Orders") as producer:
        producer.send_batch([b"7", b"8", b"9"])
    bank.create_table("ORDERS")
    bank.table("ORDERS").put(b"k", b"v")
    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name in ("Orders", "orders", "ORDERS", "oRDERS"))
    named = NamedRelation("oRDERS", table="accounts")
    assert ask(f"SELECT {counts}", named) == [(3, 10, 1, 100)]
    assert ask("SELECT count(*) FROM orders") == [(10,)]
    assert ask("SELECT count(*) FROM Orders") == [(3,)]
    assert ask("SELECT count(*) FROM Orders o JOIN orders p ON o.value = p.value") == [(3,)]
    assert ask("SELECT count(KEY) FROM accounts") == [(100,)]
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_names_that_are_given(bank: Store, ask: Ask) -> None:
    """A name for a topic, whichever name a table has; without one a name of both is refused."""
    bank.create_table("orders")
    with pytest.raises(InvalidValue, match="orders is the name of a topic and of a table"):
        ask("SELECT * FROM orders")
    counted = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM t)"
    assert ask(counted, NamedRelation.of_topic("orders"), NamedRelation.of_table("t=orders")) == [(10, 0)]
    with pytest.raises(TopicNotFound, match="neither a topic nor a table acounts") as error:
        ask("SELECT * FROM acounts")
    assert error.value.hint == "Did you mean accounts?"


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO accounts SELECT key, value FROM orders", "CREATE TABLE x AS SELECT 1", "SHOW TABLES"],
)
def test_what_is_no_query_is_refused(ask: Ask, statement: str) -> None:
    """Before anything of it runs."""
    with pytest.raises(InvalidValue, match="no query"):
        ask(statement)


@pytest.fixture
def printed(
    spark: SparkSession, bank: Store, path: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: Any
) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this session; exit code, output, errors."""

    @contextmanager
    def shared(_name: str, **_options: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "spark_session", shared)
    monkeypatch.setenv("TXNCTL_STORE", path)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["pipeline", "sql", *words])
        out, err = capsysbinary.readouterr()
        return status, out.decode(), err.decode()

    return run


def test_the_command_prints_every_format(bank: Store, printed: Callable[..., tuple[int, str, str]]) -> None:
    """A table for people, JSON of the same rows, and the first column alone."""
    bank.table("accounts").put(b"\xff", b"\x1b[2J")
    statement = (
        "SELECT key, value, 1.50BD AS price, array(1, 2) AS list, map('a', CAST(map() AS MAP<STRING, INT>)) AS map, struct('x' AS a) AS part, timestamp'2024-05-01 10:00:00Z' AS at "
        "FROM accounts WHERE key IN ('B1', X'FF') ORDER BY key"
    )
    status, out, err = printed(statement, "-o", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)[0] == {
        "key": "B1", "value": "10", "price": "1.50", "list": [1, 2], "map": {"a": {}}, "part": {"a": "x"}, "at": "2024-05-01T10:00:00.000Z",
    }  # fmt: skip
    assert json.loads(out)[1]["keyBase64"] == "/w=="
    lines = printed(statement, "-o", "ndjson")[1].splitlines()
    assert list(map(json.loads, lines)) == json.loads(out)
    table = printed(statement)[1]
    assert table.splitlines()[0].split() == ["key", "value", "price", "list", "map", "part", "at"]
    assert "\\x1b[2J" in table
    assert printed(statement, "-o", "name")[1] == "B1\n\\xff\n"


def test_the_command_tells_what_is_wrong(printed: Callable[..., tuple[int, str, str]]) -> None:
    """Of the statement, of names, and of the result."""
    for words, status, says in (
        (("SELEC 1",), 2, "Syntax error"),
        (("SELECT nothing FROM accounts",), 2, "nothing"),
        (("SELECT * FROM nowhere",), 3, "neither a topic nor a table nowhere"),
        (
            ("SELECT * FROM accounts a, accounts b LIMIT 1", "-o", "json"),
            2,
            "two columns of the result are named key",
        ),
        ((" ; ",), 2, "the statement is empty"),
        (("SELECT 1", "--topic", "a=nowhere"), 3, "nowhere"),
        (("SELECT 1", "--topic", "a=orders", "--table", "a=accounts"), 2, "is given twice"),
        (("DROP VIEW accounts",), 2, "no query"),
    ):
        found, out, err = printed(*words)
        assert (found, out) == (status, ""), err
        assert says in err
    assert printed("SELECT * FROM orders WHERE 1 = 0")[1:] == ("", "txnctl: the result has no rows\n")
