"""What an operator is told of holders far away: a session of a stranger, and processes of another host."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

import pytest

from storage import Store
from storage.errors import WriterBusy
from tests.processes.child import Child, Children
from tests.processes.postgres.hosts import Host
from tests.processes.postgres.servers import Server
from tests.processes.postgres.test_hosts import children, far
from tests.processes.postgres.test_unfit_servers import held, keys

__all__ = ["children", "far"]

INSIDE = """
from storage.disk.postgres.gate import GateWait
with Store.open(path) as store:
    environment = store.connection.environment
    # The operator has all the time that a busy machine needs.
    environment._batches.execute("SET idle_in_transaction_session_timeout = 60000")
    with contextlib.suppress(errors.TxnctlError), environment.gate(GateWait(5, None)):
        say("pid", os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def told(url: str, *words: str) -> Any:
    """The answer of a command of this host, in JSON."""
    command = [sys.executable, "-m", "txnctl", "--store", url, *words, "-o", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def finding(url: str) -> dict[str, str]:
    """The one critical finding of `doctor`."""
    (found,) = [row for row in told(url, "doctor")["findings"] if row["severity"] == "critical"]
    return found


@pytest.mark.parametrize("role", ["postgres", "bystander"])
def test_a_strangers_session_in_the_gate_is_named_with_its_end(server: Server, role: str) -> None:
    """Also to a role that may not see what sessions of others do; the command of the finding frees the gate."""
    store_name = f"stranger_{role}"
    url = server.url(store_name)
    Store.create(url, durability="local")
    if role != "postgres":
        server.psql(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {store_name} TO {role}")
        server.psql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {store_name} TO {role}")
    with Store.open(url) as store, held(server, keys(store)[0], 0):
        asked = server.url(store_name, user=role)
        gate = next(row for row in told(asked, "store", "locks") if row["lock"] == "writer gate")
        assert (gate["user"], gate["program"], gate["pid"]) == ("postgres", "psql", None)
        assert gate["heldMs"] >= 1000
        assert gate["activity"] == ("idle" if role == "postgres" else None)
        found, ended = finding(asked), f"SELECT pg_terminate_backend({gate['session']})"
        assert (found["code"], found["command"]) == ("gate-held", f"psql -c '{ended}'")
        assert "psql, user postgres" in found["what"] and "no process of txnctl" in found["why"]
        (measure,) = [row for row in told(asked, "check")["measures"] if row["name"] == "gate"]
        assert (measure["state"], measure["value"]) == ("CRITICAL", 1)
        with pytest.raises(WriterBusy) as busy:
            store.connection.write(lambda batch: batch.count, timeout_s=0.3)
        assert f"terminate_session({gate['session']})" in str(busy.value.hint)
        server.psql(ended)
        store.create_topic("t")


def stopped_inside(host: Host, children: Children) -> tuple[Child, int]:
    """A process of the host that is stopped inside the gate, and its pid."""
    child = children.run(INSIDE, path=host.url("s"), prefix=host.prefix)
    return child, int(child.expect("pid"))


def test_a_process_stopped_in_the_gate_on_another_host(far: tuple[Server, Host], children: Children) -> None:
    """Host and session are named, and what continues the process there; no word sends the reader to this machine."""
    server, host = far
    child, pid = stopped_inside(host, children)
    found = finding(server.url())
    assert (found["code"], shlex.split(found["command"])) == (
        "gate-held", ["ssh", host.name, "kill", "-CONT", str(pid)],
    )  # fmt: skip
    assert f"process {pid} on {host.name}" in found["what"] and "idle in transaction" in found["what"]
    assert "pg_terminate_backend" in found["why"]
    subprocess.run([*host.prefix, *shlex.split(found["command"])[2:]], check=True)
    child.succeed()
    assert told(server.url(), "doctor")["findings"] == []


OWNER = """
with Store.open(path) as store:
    txn = store.transaction()
    store.create_producer("t").send(b"open", txn=txn)
    txn.flush()
    consumer = store.subscribe("t", "s")
    say("pid", os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_an_owner_on_another_host_is_told_there(far: tuple[Server, Host], children: Children) -> None:
    """Its host is named beside the pid; evidence, advice and ways out send nobody to a process of this machine."""
    server, host = far
    child = children.run(OWNER, path=host.url("s"), prefix=host.prefix)
    pid = int(child.expect("pid"))
    with Store.open(server.url()) as store:
        (txn,) = [str(row.txn_id) for row in store.reports.list_transactions()]
    ways = {
        way["choice"]: way["command"] for way in told(server.url(), "transactions", "explain", txn)["choices"]
    }
    assert shlex.split(ways["look"]) == ["ssh", host.name, "ps", "-fp", str(pid)]
    words = [sys.executable, "-m", "txnctl", "--store", server.url(), "transactions", "explain", txn]
    said = " ".join(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert "kernel" not in said and f"process {pid} on {host.name}" in said
    assert f"only {host.name} tells whether it is stopped" in said
    subprocess.run([*host.prefix, "kill", "-CONT", str(pid)], check=True)
    child.succeed()
