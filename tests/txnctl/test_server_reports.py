"""The commands on a store of a server: what speaks of files elsewhere speaks of the server, and passwords stay hidden."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.postgres_cluster import Cluster
from tests.throwaway_server import Server
from tests.txnctl.conftest import Outcome
from txnctl.commands.health.check import CHECKED
from txnctl.commands.store.info import INFO
from txnctl.commands.store.locks import LOCKS
from txnctl.commands.store.readers import READERS
from txnctl.fields.overview import OVERVIEW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.needs_program("initdb")

Run = Callable[..., Outcome]

OF_FILES = re.compile(r"data\.mdb|data file|unknown left|of 512|- left| file of ")
"""Words about files, and the signs of an unknown figure among them."""
HOLDING = """
import signal, sys
from storage import Store
store = Store.open(sys.argv[1])
store.create_topic("held")
consumer = store.subscribe("held", "billing")
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store on the server, named to every command of the test, and verified in full at the end."""
    url = server.url()
    monkeypatch.setenv("TXNCTL_STORE", url)
    Store.create(url, durability="local")
    yield url
    with Store.open(url) as store:
        assert store.maintenance.verify_store(full=True) == []
    server.run(f"SET client_min_messages = error; DROP SCHEMA {url.rpartition('=')[2]} CASCADE")


def with_password(url: str) -> str:
    """The URL with a password, which a server that trusts its users does not ask for."""
    return url.replace("//postgres@", "//postgres:geheim@")


def test_a_server_without_a_standby_is_refused_unless_told(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint has the option; a second store of the name is not made."""
    url = server.url()
    refused = run("store", "init", url)
    assert refused.status == 6
    assert "--durability local" in refused.err
    made = run("store", "init", url, "--durability", "local", "-o", "json")
    assert (made.json["path"], made.json["created"]) == (url, True)
    assert run("store", "init", url, "--durability", "local").status == 4
    assert run("store", "init", "--store", url, "--if-not-exists", "--durability", "local").status == 0
    server.run(f"SET client_min_messages = error; DROP SCHEMA {url.rpartition('=')[2]} CASCADE")


def test_reports_speak_of_the_server(run: Run, url: str, tmp_path: Path) -> None:
    """Not of a file, nor of a disk with an unknown rest."""
    run("produce", "orders", "--create", "-m", "a")
    page = tmp_path / "page.html"
    texts = {
        words: run(*words).out
        for words in (
            ("status",),
            ("store", "info"),
            ("doctor",),
            ("check",),
            ("store", "space"),
            ("store", "locks"),
        )
    }
    run("report", "--html", str(page))
    texts["report",] = page.read_text()
    for words, text in texts.items():
        assert not OF_FILES.search(text), words
    for words in (("status",), ("store", "info"), ("report",)):
        assert "PostgreSQL" in texts[words], words
        assert "local: the loss of the server" in texts[words].replace("&#x27;", "'"), words
        assert "connections" in texts[words], words
    assert "on the disk" not in texts["report",]


def test_json_of_a_server_has_null_for_what_only_files_have(run: Run, url: str) -> None:
    """And one more object."""
    info = run("store", "info", "-o", "json").json
    assert not undeclared(info, INFO)
    assert info["server"]["durability"] == "local"
    for name in ("usedBytes", "mapBytes", "freeBytes", "readersInUse", "readersMax"):
        assert info[name] is None
    overview = run("status", "-o", "json").json
    assert not undeclared(overview, OVERVIEW)
    assert overview["readers"]["inUse"] is None
    assert overview["store"]["diskFreeBytes"] is None
    checked = run("check", "-o", "json").json
    assert not undeclared(checked, CHECKED)
    values = {measure["name"]: measure["value"] for measure in checked["measures"]}
    assert (values["space"], values["readers"], values["standby"]) == (None, None, 0)
    assert 0 < values["connections"] < 100
    plain = run("check").out
    assert "space=" not in plain
    assert "connections=" in plain
    metrics = run("check", "--format", "prometheus").out
    assert "txnctl_server_connections_max" in metrics
    assert "txnctl_disk_free_bytes" not in metrics


def test_a_directory_has_no_measures_of_a_server(run: Run, path: Path) -> None:
    """Its check stays as it was."""
    names = [measure["name"] for measure in run("check", "-o", "json").json["measures"]]
    assert "space" in names
    assert not {"standby", "standby-lag", "vacuum", "connections"} & set(names)
    assert run("store", "info", "-o", "json").json["server"] is None


def test_locks_and_readers_name_processes_of_all_hosts(run: Run, url: str) -> None:
    """With host, pid and program."""
    process = subprocess.Popen([sys.executable, "-c", HOLDING, url], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        rows = run("store", "locks", "-o", "json").json
        assert not undeclared(rows[0], LOCKS)
        here = os.uname().nodename
        assert {(row["lock"].split()[0], row["pid"], row["host"]) for row in rows} == {
            ("lease", process.pid, here),
            ("store", process.pid, here),
        }
        assert f"process {process.pid} on {here}" in run("store", "locks").out
    finally:
        process.kill()
        process.communicate()
    rows = run("store", "readers", "-o", "json").json
    assert all(not undeclared(row, READERS) for row in rows)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("store", "compact"), "store copy"),
        (("store", "config", "reserve", "5M"), "disk of the server"),
        (("store", "backup", "postgresql:///x?store=y"), "store copy"),
    ],
)
def test_changes_of_files_are_refused_with_the_way_instead(
    run: Run, url: str, words: tuple[str, ...], instead: str
) -> None:
    """Nothing is done, and nothing suggests that it was."""
    outcome = run(*words)
    assert outcome.status == 2
    assert instead in outcome.err
    assert run("store", "config", "reserve").out == "0\n"
    assert run("store", "upgrade").status == 0


def test_children_get_the_password_by_their_environment(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that needs the password finds it where it was; arguments, which everybody can read, have none."""
    monkeypatch.setenv("TXNCTL_STORE", with_password(url))
    assert run("topics", "create", "orders").status == 0
    verified = run("store", "verify", "--quick", "-o", "json")
    assert (verified.status, verified.json["path"]) == (0, url)
    told = 'printf %s "$TXNCTL_STORE"'
    for words in (("transactions", "run"), ("producers", "lead", "orders")):
        assert run(*words, "--", "sh", "-c", told).status == 0
    run("produce", "orders", "-m", "x")
    run("subscriptions", "create", "orders", "s", "--from", "earliest")
    handled = run("consume", "orders", "-s", "s", "--exec", f'test "$({told})" = "{with_password(url)}"')
    assert handled.status == 0, handled
    for words in (
        ("status",),
        ("doctor",),
        ("config", "show"),
        ("store", "info", "-o", "json"),
        ("report", "-o", "json"),
    ):
        outcome = run(*words)
        assert outcome.status == 0
        assert "geheim" not in outcome.out + outcome.err


def test_names_complete_from_a_server(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a directory."""
    run("topics", "create", "orders")
    monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", "txnctl topics show o")
    assert "orders" in run().out


def test_hints_name_the_store_that_was_typed(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line acts on the same store when pasted."""
    monkeypatch.delenv("TXNCTL_STORE")
    outcome = run("topics", "show", "none", "--store", url)
    assert outcome.status == 3
    run("topics", "create", "orders", "--store", url)
    begun = run("transactions", "begin", "--store", url).out.strip()
    run("produce", "orders", "--txn", begun, "-m", "x", "--store", url)
    run("produce", "orders", "-m", "y", "--store", url)
    assert f"txnctl --store '{url}' transactions explain {begun}" in run("doctor", "--store", url).out
    run("transactions", "abort", begun, "--yes", "--force", "--reason", "test", "--store", url)


def test_the_doctor_of_a_store_that_refuses_its_role_looks_at_no_directory(
    run: Run, url: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ls -ld` of a URL says nothing."""
    server.run("DROP ROLE IF EXISTS outsider; CREATE ROLE outsider LOGIN")
    monkeypatch.setenv("TXNCTL_STORE", url.replace("//postgres@", "//outsider@"))
    outcome = run("doctor", "-o", "json")
    (finding,) = outcome.json["findings"]
    assert (outcome.status, finding["code"]) == (6, "not-permitted")
    assert finding["command"] == "txnctl errors explain not-permitted"
    server.run("DROP ROLE outsider")


def test_a_missing_driver_is_named_with_the_way_to_get_it(path: Path) -> None:
    """Exit 11, and the extra to install."""
    code = "import sys; sys.modules['psycopg'] = None; from txnctl.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "topics", "list", "--store", "postgresql:///x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 11, done.stderr
    assert "pip install 'txnctl[postgres]'" in done.stderr


def test_commands_on_directories_import_nothing_of_a_server(path: Path) -> None:
    """Start-up is part of the product."""
    code = (
        "import sys; sys.argv[1:] = ['topics', 'list']\n"
        "try:\n    from txnctl.cli.main import main; main(sys.argv[1:])\n"
        "finally:\n    print([name for name in sys.modules if name.split('.')[0] in ('psycopg', 'urllib')"
        " or 'postgres' in name or 'server' in name], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]", done.stderr


def test_a_lost_standby_is_critical(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor says why nobody can write, and the check alarms."""
    cluster = Cluster()
    standby: Cluster | None = None
    try:
        cluster.initdb().start()
        standby = cluster.standby("s1")
        cluster.wait_for("s1")
        monkeypatch.setenv("TXNCTL_STORE", cluster.url())
        assert run("store", "init").status == 0
        assert run("topics", "create", "orders").status == 0
        assert "each change waits for s1; s1 sync, " in run("store", "info").out
        assert run("doctor").out.count("!") == 0
        assert run("check", "-o", "json").json["state"] == "OK"
        standby.kill()
        cluster.wait_until("SELECT count(*) FROM pg_stat_replication", "0")
        (finding,) = run("doctor", "-o", "json").json["findings"]
        assert (finding["code"], finding["severity"]) == ("standby-missing", "critical")
        assert run("check").status == 2
        cluster.reload({"synchronous_standby_names": "''"})
        (finding,) = run("doctor", "-o", "json").json["findings"]
        assert finding["code"] == "standby-unnamed"
        assert run("topics", "create", "other").status == 6
    finally:
        if standby is not None:
            standby.remove()
        cluster.remove()
