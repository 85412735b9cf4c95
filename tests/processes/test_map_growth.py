"""The memory map: it grows for all processes at once, and a process that may not have more of it loses nothing."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.errors import StoreClosed, StoreFull
from tests.processes.child import Children

SMALL_MAPS = """
    from storage.disk.lmdb import data_file
    data_file.MAP_BYTES_WANTED = data_file.MAP_BYTES_FALLBACK = data_file.MAP_BYTES_SPARE = 1 << 20
"""

WRITER = (
    SMALL_MAPS
    + """
    with Store.open(path, lock_timeout=60) as store:
        assert store.reports.store_info().map_bytes == 1 << 20
        producer = store.create_producer("t")
        say("ready")
        hear()
        for number in range(30):
            producer.send(b"%s %d " % (sys.argv[2].encode(), number) + b"." * 60_000)
        assert store.reports.store_info().map_bytes > 1 << 20
        say("done")
"""
)

READER = (
    SMALL_MAPS
    + """
    with Store.open(path, read_only=True) as store:
        reader, found = store.reader("t"), []
        say("ready")
        while len(found) < 90:
            message = reader.read_next(timeout=60)
            found.append(message.value.decode().partition(" .")[0])
        say("done", *(name.replace(" ", "-") for name in found))
"""
)

LIMITED_TO = """
    import resource

    def allow(more):
        with open("/proc/self/status") as status:
            size = next(int(line.split()[1]) for line in status if line.startswith("VmSize")) * 1024
        limit = resource.RLIM_INFINITY if more is None else size + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
"""

GROWS_TOO_FAR = (
    SMALL_MAPS
    + LIMITED_TO
    + """
    with Store.open(path) as store:
        producer = store.create_producer("t")
        producer.send(b"0" * 60_000)
        allow(28 << 20)
        stored = 1
        try:
            for stored in range(1, 1000):
                producer.send(b"%d" % stored + b"." * 60_000)
        except errors.StoreFull as error:
            assert error.hint and "address space" in error.message, error.message
            say("full", stored)
        assert sum(1 for _ in store.reader("t")) == stored, "what was acknowledged is read through the old map"
        try:
            producer.send(b"x" * 1_000_000)
        except errors.StoreFull:
            say("still", "full")
        allow(None)
        producer.send(b"x" * 1_000_000)
        assert sum(1 for _ in store.reader("t")) == stored + 1
        assert store.maintenance.verify_store(full=True) == []
        say("works", stored + 1)
"""
)

FOLLOWS_TOO_FAR = (
    SMALL_MAPS
    + LIMITED_TO
    + """
    with Store.open(path, read_only=sys.argv[2] == "read only") as store:
        reader = store.reader("t")
        assert not reader.has_message_available()
        allow(2 << 20)
        say("ready")
        hear()
        for attempt in (reader.has_message_available, store.topics, lambda: store.reports.topic_stats("t")):
            try:
                attempt()
            except (errors.StoreFull, errors.StoreClosed) as error:
                say(error.code, error.message)
            else:
                say("worked")
        allow(None)
    with Store.open(path) as store:
        store.create_producer("t").send(b"more")
        say("works", len(list(store.reader("t"))))
"""
)

OPENS_AND_WRITES = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), resource.RLIM_INFINITY))
    with Store.open(path) as store:
        say("map", store.reports.store_info().map_bytes)
        producer = store.create_producer("t")
        for number in range(50):
            producer.send(b"%d" % number + b"." * 100_000)
        assert store.maintenance.verify_store(full=True) == []
        say("count", len(list(store.reader("t"))))
"""


def test_the_map_grows_while_several_processes_write_and_read(path: str, children: Children):
    """Three writers outgrow maps of 1 MiB; they and a reader take over each other's growth and miss nothing."""
    writers = [children.run(WRITER, name) for name in "abc"]
    reader = children.run(READER)
    for child in (*writers, reader):
        child.expect("ready")
    for writer in writers:
        writer.say("go")
    for writer in writers:
        writer.expect("done", 60)
    found = reader.expect("done", 60).split()
    assert sorted(found) == sorted(f"{name}-{number}" for name in "abc" for number in range(30))
    for name in "abc":
        assert [each for each in found if each[0] == name] == [f"{name}-{number}" for number in range(30)]
    with Store.open(path, read_only=True) as store:
        assert len(list(store.reader("t"))) == 90


def test_a_process_that_may_not_grow_its_map_loses_nothing_and_goes_on_when_it_may(
    path: str, children: Children
):
    """StoreFull where address space ends; the handle still reads, and writes again once the limit is lifted."""
    child = children.run(GROWS_TOO_FAR)
    assert int(child.expect("full")) > 1
    assert child.expect("still") == "full"
    stored = int(child.expect("works"))
    child.succeed()
    with Store.open(path, read_only=True) as store:
        assert len(list(store.reader("t"))) == stored


@pytest.mark.parametrize("mode", ["read only", "read and write"])
def test_a_process_that_may_not_follow_anothers_growth_is_told_and_goes_on_when_it_may(
    store: Store, children: Children, mode: str
):
    """Limited in address space: StoreFull, never a crash; opened anew when it may, it reads and writes everything."""
    child = children.run(FOLLOWS_TOO_FAR, mode)
    child.expect("ready")
    producer = store.create_producer("t")
    for _ in range(200):
        producer.send(b"." * 60_000)
    child.say("go")
    assert "address space" in child.expect(StoreFull.code)
    for _ in range(2):
        line = child.line()
        assert line is not None and line.startswith((StoreFull.code, StoreClosed.code)), child.complaint()
        assert "address space" in line
    assert child.expect("works") == "201"
    child.succeed()


@pytest.mark.parametrize("limit", [3 << 30, 400 << 20])
def test_a_process_with_little_address_space_opens_and_uses_a_store(
    path: str, children: Children, limit: int
):
    """Where a map of the wanted size is refused, a smaller one is taken, and grows as needed."""
    child = children.run(OPENS_AND_WRITES, limit)
    assert int(child.expect("map")) < limit
    assert child.expect("count") == "50"
    child.succeed()


def test_a_store_larger_than_the_address_space_is_refused_in_words(path: str, children: Children):
    """A sparse data file of 3 GiB under a limit of 1 GiB: StoreFull with a hint, not a crash."""
    os.truncate(os.path.join(path, "data.mdb"), 3 << 30)
    child = children.run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
        try:
            Store.open(path)
        except errors.StoreFull as error:
            say(error.code, error.hint)
        """
    )
    assert "ulimit -v" in child.expect(StoreFull.code)
    child.succeed()
