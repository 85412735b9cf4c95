"""Too many open files: at whatever file the limit is met, the error says so, and the store goes on afterwards."""

from __future__ import annotations

import pytest

from tests.processes import places
from tests.processes.child import Children

ATTEMPTS = """
    import resource
    from tests.processes import places
    new, copy = path + "-new", path + "-copy"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def in_transaction(store):
        with store.transaction() as txn:
            store.table("a").get(b"k", txn=txn)
            store.table("a").put(b"k", b"v", txn=txn)

    attempts = {
        "open": lambda store: Store.open(copy).close(),
        "create": lambda store: Store.create(new),
        "send": lambda store: store.create_producer("t").send(b"x"),
        "transaction": in_transaction,
        "backup": lambda store: store.maintenance.backup_store(new),
        "compact": lambda store: store.maintenance.compact_store(),
        "restore": lambda store: Store.restore(places.name_of(path), places.name_of(new)),
    }
    with Store.open(path) as store:
        store.create_table("a")
        if places.is_on_server():
            Store.create(copy)
        else:
            store.maintenance.backup_store(copy)
        attempts[sys.argv[2]](store)  # loads the modules
    for more in range(20):
        for name in {new, places.name_of(new)}:
            if places.is_there(name):
                places.remove(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + "/reads.cache")
        with Store.open(path) as store:
            taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(more)]
            lowest = os.dup(0)
            os.close(lowest)
            for number in taken:
                os.close(number)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
            try:
                attempts[sys.argv[2]](store)
            except errors.TxnctlError as error:
                say(error.code, error.hint)
            except OSError as error:
                say("raw", error)
            else:
                say("done")
                break
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
"""


@pytest.mark.parametrize("name", ["open", "create", "send", "transaction", "backup", "compact", "restore"])
def test_too_many_open_files_are_named_as_the_cause(path: str, children: Children, name: str) -> None:
    """With room for one file more each time, until all files find room."""
    child = children.run(ATTEMPTS, name)
    said = []
    while (line := child.line()) not in ("done", None):
        said.append(line)
    child.succeed()
    assert line == "done"
    assert {text.split()[0] for text in said} <= {"too-many-files"}
    if not said:
        assert name == "send" or (name == "transaction" and places.is_on_server()), "it opens files"
    assert all("ulimit -n" in text for text in said)
