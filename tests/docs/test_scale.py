"""The commands of the page for servers: from an empty server to the first message, and three roles."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import NotPermitted
from tests.not_run import program
from tests.processes.postgres.servers import Server

PAGE = Path(__file__).parents[2] / "docs" / "SCALE.md"

pytestmark = pytest.mark.needs_program("initdb")


def blocks(heading: str) -> list[str]:
    """The shell blocks under a heading."""
    text = PAGE.read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    return re.findall(r"```bash\n(.*?)```", re.split(r"\n#+ ", text)[0], re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """An empty server, which asks nobody for a password."""
    running = Server()
    yield running
    running.remove()


def shell(server: Server, text: str) -> str:
    """Run a block as the page says; a superuser without a password prompt, and an installed driver."""
    text = text.replace(" --pwprompt", "").replace("@localhost/bank?", f"@/bank?host={server.directory}&")
    lines = [line for line in text.splitlines() if not line.startswith("pip install")]
    path = [os.path.dirname(sys.executable), os.path.dirname(program("createdb")), os.environ["PATH"]]
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-ec", "\n".join(lines)],
        env={**os.environ, "PATH": os.pathsep.join(path), "PGHOST": server.directory, "PGUSER": "postgres"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def test_from_an_empty_server_to_the_first_message(server: Server) -> None:
    """Then a worker writes and may not drop, a reader reads and may not write, and a stranger does not enter."""
    setting_up, using = blocks("## From an empty server to the first message")
    shell(server, setting_up)
    assert "the first message" in shell(server, using)
    (granting,) = blocks("### Three roles")
    shell(server, granting)

    def url(role: str) -> str:
        return f"postgresql://{role}@/bank?host={server.directory}&store=bank"

    with Store.open(url("worker")) as store:
        store.create_topic("work")
        store.create_producer("work").send(b"1")
        consumer = store.subscribe("work", "s", initial_position=EARLIEST)
        consumer.acknowledge(consumer.receive(timeout=30))
        table = store.table("accounts", create=True)
        with store.transaction() as txn:
            table.put(b"a", b"1", txn=txn)
        store.maintenance.collect_garbage()
    with Store.open(url("reader"), read_only=True) as store:
        assert [message.value for message in store.reader("work", start=EARLIEST)] == [b"1"]
        assert store.table("accounts").get(b"a") is not None
        assert store.reports.list_topics()
    with Store.open(url("reader")) as store, pytest.raises(NotPermitted, match="permission denied"):
        store.create_topic("more")
    server.psql("CREATE ROLE stranger LOGIN")
    with pytest.raises(NotPermitted, match="may not connect"):
        Store.open(url("stranger"))
    for role in ("worker", "reader"):
        dropped = subprocess.run(
            [program("psql"), "-Xqc", "DROP SCHEMA bank CASCADE", "-h", server.directory, "-U", role, "bank"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "must be owner of schema bank" in dropped.stderr
    with Store.open(url("bank")) as store:
        assert store.maintenance.verify_store(full=True) == []


def test_the_demo_runs_on_one_server(server: Server) -> None:
    """A newcomer has no standby."""
    done = subprocess.run(
        [sys.executable, "-m", "txnctl", "demo", "--accounts", "2", "--store", server.url("demo")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr}"
