"""The example of a leader's key-value state, played by real processes that race, are killed and are stopped.

Nothing here waits for a time to pass: a process is stopped or killed after it has said how far it is.
"""

from __future__ import annotations

from itertools import groupby

import pytest

from storage import IsolationLevel, Store
from storage.errors import TransactionNotOpen
from tests.examples.conftest import Start
from tests.processes.child import Child

MANY = 400


def leads(child: Child, name: str, epoch: int, keys: int) -> None:
    """Wait until it says that it leads."""
    assert child.expect(name) == f"leads map in epoch {epoch}, keys: {keys}"


def waits(child: Child, name: str, behind: str) -> None:
    """Wait until it says that it stands in the queue."""
    assert child.expect(name).startswith(f"waits for map, behind {behind} (")


def put(child: Child, key: str, value: str, epoch: int) -> None:
    child.say(f"put {key} {value}")
    assert child.line() == f"{key} = {value} (epoch {epoch})"


def show(child: Child) -> dict[str, tuple[str, str]]:
    """Its whole state: key -> value and who wrote it."""
    child.say("show")
    found = {}
    while not (line := child.line() or "").startswith("keys: "):
        key, _, rest = line.partition(" = ")
        value, _, leader = rest.rpartition(" (")
        found[key] = (value, leader.rstrip(")"))
    assert line == f"keys: {len(found)}"
    return found


def is_fenced(child: Child, name: str, by: str) -> None:
    """It says that it is fenced, and ends."""
    said = child.expect(name)
    assert said.startswith("is fenced: ")
    assert by in said
    assert child.wait() == 4


def leaders(store: Store) -> list[tuple[int, str]]:
    """Epoch and producer of each stretch of the log, of messages of aborted transactions too."""
    log = store.reader("map", isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return [who for who, _ in groupby(log, lambda message: (message.epoch, message.producer_name))]


def test_of_two_that_race_one_leads_and_the_other_waits(start: Start, store: Store):
    """Started at once on a topic that is not there yet, one owns it and the other stands behind it, in turn."""
    racing = {name: start(name) for name in ("anna", "bert")}
    first = {name: (child.line() or "").split(" ", 2)[1] for name, child in racing.items()}
    assert sorted(first.values()) == ["leads", "waits"]
    (one,), (two,) = ([name for name in first if first[name] == word] for word in ("leads", "waits"))
    put(racing[one], "colour", "green", 0)
    racing[one].succeed()
    leads(racing[two], two, epoch=1, keys=1)
    put(racing[two], "shape", "round", 1)
    assert show(racing[two]) == {"colour": ("green", "epoch 0"), "shape": ("round", "epoch 1")}
    assert leaders(store) == [(0, one), (1, two)]


@pytest.mark.parametrize("acknowledged", [1, 37, MANY - 1])
def test_a_leader_killed_while_it_writes_leaves_all_that_it_acknowledged(
    start: Start, store: Store, acknowledged: int
):
    """After SIGKILL the waiting one leads, and its state is what was acknowledged and at most what was on its way."""
    anna = start("anna")
    leads(anna, "anna", epoch=0, keys=0)
    bert = start("bert")
    waits(bert, "bert", behind="anna")
    sent = [(f"k{number:03}", f"v{number}") for number in range(MANY)]
    anna.say("\n".join(f"put {key} {value}" for key, value in sent))
    for key, value in sent[:acknowledged]:
        assert anna.line() == f"{key} = {value} (epoch 0)"
    anna.kill()
    said = acknowledged
    while anna.line() is not None:
        said += 1
    rest = bert.expect("bert")
    state = show(bert)
    assert rest == f"leads map in epoch 1, keys: {len(state)}"
    assert said <= len(state) <= said + 1
    assert state == {key: (value, "epoch 0") for key, value in sent[: len(state)]}
    put(bert, "k000", "mine", 1)
    assert leaders(store) == [(0, "anna"), (1, "bert")]


def test_a_stopped_leader_is_taken_over_and_learns_that_it_is_fenced(start: Start, store: Store):
    """A write that reaches it while it is stopped is refused when it goes on; one that waited is fenced as well."""
    anna = start("anna")
    leads(anna, "anna", epoch=0, keys=0)
    put(anna, "colour", "green", 0)
    anna.stop()
    bert = start("bert")
    waits(bert, "bert", behind="anna")
    anna.say("put colour late")
    cleo = start("cleo", "--take-over")
    leads(cleo, "cleo", epoch=1, keys=1)
    is_fenced(bert, "bert", by="cleo")
    put(cleo, "colour", "blue", 1)
    anna.resume()
    is_fenced(anna, "anna", by="cleo")
    put(cleo, "shape", "round", 1)
    assert show(cleo) == {"colour": ("blue", "epoch 1"), "shape": ("round", "epoch 1")}
    assert leaders(store) == [(0, "anna"), (1, "cleo")]


def test_one_that_was_fenced_starts_again_and_has_what_its_successor_wrote(start: Start, store: Store):
    """Its second life stands in the queue, and reads the log from the beginning."""
    anna = start("anna")
    leads(anna, "anna", epoch=0, keys=0)
    put(anna, "colour", "green", 0)
    cleo = start("cleo", "--take-over")
    leads(cleo, "cleo", epoch=1, keys=1)
    cleo.say("delete colour")
    assert cleo.line() == "colour is gone"
    anna.say("put colour late")
    is_fenced(anna, "anna", by="cleo")
    again = start("anna")
    waits(again, "anna", behind="cleo")
    put(cleo, "shape", "round", 1)
    cleo.succeed()
    leads(again, "anna", epoch=2, keys=1)
    assert show(again) == {"shape": ("round", "epoch 1")}
    put(again, "size", "3", 2)
    assert leaders(store) == [(0, "anna"), (1, "cleo"), (2, "anna")]


def test_what_a_predecessor_left_in_an_open_transaction_neither_shows_nor_hides_anything(
    start: Start, store: Store
):
    """Becoming the leader aborts it, so that reading at READ_COMMITTED reaches the end of the log at once."""
    with store.create_producer("map", access_mode="Exclusive", create_topic=True) as before:
        before.send(b"green", key="colour")
        open_one = store.begin_transaction()
        before.send(b"never", key="colour", txn=open_one)
        before.send(b"round", key="shape")
    anna = start("anna")
    leads(anna, "anna", epoch=1, keys=2)
    with pytest.raises(TransactionNotOpen, match="fenced"):
        store.commit_transaction(open_one)
    assert show(anna) == {"colour": ("green", "epoch 0"), "shape": ("round", "epoch 0")}


def test_what_was_written_before_there_was_a_leader_is_part_of_the_state(start: Start, store: Store):
    """Messages of Shared producers count, as nobody's; those without a key are none of the state's."""
    store.create_topic("map")
    with store.create_producer("map") as shared:
        shared.send_batch([b"green", b"a remark", None], keys=["colour", None, "shape"])
    anna = start("anna")
    leads(anna, "anna", epoch=0, keys=1)
    assert show(anna) == {"colour": ("green", "no leader")}


def test_a_leader_reads_its_state_from_the_compacted_topic(start: Start, store: Store):
    """With every original trimmed, a new leader has each key's newest value, and goes on."""
    store.create_topic("map", ledger_entries_max=2)
    store.admin.topics.set_retention("map", time_ms=0)
    anna = start("anna")
    leads(anna, "anna", epoch=0, keys=0)
    for number in range(6):
        put(anna, f"k{number % 2}", f"v{number}", 0)
    anna.say("delete k0")
    assert anna.line() == "k0 is gone"
    store.admin.topics.compact_topic("map")
    store.admin.topics.trim_topic("map")
    assert list(store.reader("map")) == []
    put(anna, "k2", "tail", 0)
    cleo = start("cleo", "--take-over")
    leads(cleo, "cleo", epoch=1, keys=2)
    assert show(cleo) == {"k1": ("v5", "epoch 0"), "k2": ("tail", "epoch 0")}
    put(cleo, "k0", "back", 1)


def test_a_store_that_is_not_there_is_an_error_in_words(start: Start, path: str):
    """The example ends as txnctl does: with a sentence and the exit code of the error."""
    child = Child(["-m", "examples.leader_kv", path + "-missing", "map", "anna"])
    try:
        assert child.wait() == 6
        assert child.complaint().startswith("error: ")
    finally:
        child.close()
