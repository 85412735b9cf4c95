"""A copy whose process is killed goes on in the next one, between directories and servers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreNotFound
from tests.processes.child import Children
from tests.storage.maintenance.rich_store import build_rich, records_of
from tests.throwaway_server import Server

pytestmark = pytest.mark.needs_program("initdb")

COPY = """
    from storage import faults
    from storage.maintenance import record_copy
    record_copy.BATCH_BYTES = 1 << 17
    reached = 0
    def reach():
        global reached
        reached += 1
        if reached == int(sys.argv[5]):
            os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[4]:
        faults.arm(sys.argv[4], reach)
    result = Store.copy(sys.argv[2], sys.argv[3], durability="local")
    say(f"copied {result.is_resumed} {result.written} {result.content.records}")
"""
POINTS = (
    ("store.copy.after_batch", 1),
    ("store.copy.after_batch", 5),
    ("store.copy.before_comparison", 1),
    ("environment.before_commit", 1),
    ("environment.after_commit", 1),
    ("store.copy.before_install", 1),
)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that no test changes."""
    path = tmp_path_factory.mktemp("rich") / "store"
    build_rich(path)
    return str(path)


@pytest.mark.parametrize("way", ["to a directory", "to a server", "from a server"])
def test_a_killed_copy_goes_on(
    children: Children, rich: str, way: str, server: Server, tmp_path: Path
) -> None:
    """Killed again and again, further on each time; there is no store at the destination before the last run ends."""
    source, destination = rich, str(tmp_path / "copy")
    if way == "to a server":
        destination = server.url()
    elif way == "from a server":
        source = server.url()
        Store.copy(rich, source, durability="local")
    for point, count in POINTS:
        assert children.run(COPY, source, destination, point, str(count)).wait() == -signal.SIGKILL
        with pytest.raises(StoreNotFound):
            Store.open(destination)
    last = children.run(COPY, source, destination, "", "0")
    is_resumed, written, records = last.expect("copied").split()
    last.succeed()
    assert is_resumed == "True"
    assert int(written) < int(records) / 2
    with Store.open(destination) as store:
        assert store.maintenance.verify_store() == []
    assert records_of(destination).keys() >= {key for key in records_of(source) if key[0] == "entries"}
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_a_dead_copy_holds_no_lock(children: Children, rich: str, server: Server) -> None:
    """The server drops the lock of a killed copy with its session, and another one goes on at once."""
    destination = server.url()
    assert (
        children.run(COPY, rich, destination, "store.copy.before_comparison", "1").wait() == -signal.SIGKILL
    )
    assert Store.copy(rich, destination, durability="local").is_resumed
