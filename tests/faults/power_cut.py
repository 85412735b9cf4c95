"""Power cuts: every state that a cut may leave of a recorded workload, or as many as asked for, each judged.

A state is sound if the store opens after a reboot, `verify --full` finds nothing, the content of all databases is that of a
commit not older than the last acknowledged one, and the journal of acknowledged operations is found in it
(`tests.processes.crash_model`); it then takes a write and is verified again.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import lmdb

from storage import Store
from storage.disk import schema
from storage.process.clock import Clock
from tests.faults.children import in_children
from tests.faults.power_disk import Choice, Disk
from tests.faults.power_record import Event, read_record
from tests.faults.traps import compiled
from tests.processes.child import ROOT
from tests.processes.crash_model import Found, Model, check_others
from tests.processes.journal import Line, read

_META_BYTES: Final = 8192
_UNREADABLE: Final = (lmdb.Error, OSError, SystemError)


class Workload(NamedTuple):
    """A recorded workload.

    Attributes:
        root: the directory of its stores, as the record names it.
        events: the record.
        lines: the journal.
        commits: the commits of the main store in order, each the number of its event and a digest of the content.
    """

    root: str
    events: list[Event]
    lines: list[Line]
    commits: list[tuple[int, str]]


class Cut(NamedTuple):
    """A state that a cut may leave.

    Attributes:
        event: the number of the event at which the power went.
        kind: the choice of what arrived.
        acknowledged: journal lines before the cut.
        contents: digests that the main store may have: from the last commit before the last acknowledgement on, up to
            the commit under way.
        files: contents by path; None for a directory.
    """

    event: int
    kind: str
    acknowledged: int
    contents: frozenset[str]
    files: dict[str, bytes | None]


class Verdict(NamedTuple):
    """The judgement of a state: what is wrong with it, and acknowledged messages sent and lost."""

    problem: str | None
    sent: int
    lost: int


def record(directory: str, rounds: int) -> Workload:
    """Run the workload below a directory; its record, with the digest of each commit."""
    os.makedirs(os.path.join(directory, "disk"))
    words = ["-m", "tests.faults.recorded_workload", compiled("syscalls"), directory, str(rounds)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    events = list(read_record(os.path.join(directory, "record")))
    root = os.path.join(directory, "disk")
    lines = read(os.path.join(directory, "journal"))
    commits = list(_commits(root, events, os.path.join(directory, "replay")))
    return Workload(root, events, lines, commits)


def _commits(root: str, events: list[Event], place: str) -> Iterator[tuple[int, str]]:
    """Each commit of the main store: the number of its event, and the digest of what it left."""
    disk, last = Disk(root), ""
    everything = Choice("all", random.Random(0))
    for number, event in enumerate(events):
        for _ in disk.take(event):
            pass
        if (event.is_synchronous and event.offset < _META_BYTES) or event.kind == "R":
            left = disk.state(everything)
            if left.get("store/data.mdb") is not None:
                write_state({name: left[name] for name in ("store", "store/data.mdb")}, place)
                digest = content_digest(os.path.join(place, "store"))
                if digest != last:
                    last = digest
                    yield number, digest


def content_digest(path: str) -> str:
    """A digest of all records of a store, by LMDB alone."""
    digest = hashlib.blake2b(digest_size=16)
    options = {"readonly": True, "lock": False, "max_dbs": 64, "subdir": False, "create": False}
    with lmdb.open(os.path.join(path, "data.mdb"), **options) as environment, environment.begin() as view:
        for database in schema.ALL:
            digest.update(database.name.encode())
            try:
                handle = environment.open_db(database.name.encode(), view, create=False)
            except lmdb.NotFoundError:
                continue
            with view.cursor(handle) as cursor:
                for key, value in cursor:
                    digest.update(b"%d %d " % (len(key), len(value)))
                    digest.update(key)
                    digest.update(value)
    return digest.hexdigest()


def write_state(files: dict[str, bytes | None], place: str) -> None:
    """Make a directory with these contents."""
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    for name, content in files.items():
        path = os.path.join(place, name)
        if content is None:
            os.mkdir(path, 0o700)
            continue
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            kept = content.rstrip(b"\0")
            file.write(kept)
            file.truncate(len(content))


def cuts(
    workload: Workload, per_moment: int, seed: int, *, share: float = 1.0, keeps_flushes: bool = True
) -> Iterator[Cut]:
    """States that a cut may leave: at each moment all, none, and `per_moment` more by chance; each state once.

    Args:
        share: of the moments that are looked at, chosen by chance.
        keeps_flushes: False for the control: flushes are ignored, and only what is older than 60 changes of a file has
            been written back.
    """
    disk = Disk(workload.root, keeps_flushes=keeps_flushes, writes_back=None if keeps_flushes else 60)
    seen: set[bytes] = set()
    acknowledged, first, last = 0, 0, 0
    for number, event in enumerate(workload.events):
        if event.kind == "M":
            word, _, line = event.data.decode().split()
            acknowledged = int(line) + 1
            first = max(0, last - 1) if word == "did" else first
        while last < len(workload.commits) and workload.commits[last][0] <= number:
            last += 1
        contents = frozenset(digest for _, digest in workload.commits[first:last])
        for moment, _ in enumerate(disk.take(event)):
            chance = random.Random(f"{seed} {number} {moment}")
            if chance.random() >= share:
                continue
            kinds = ["all", "none", *(chance.choice(Choice.KINDS[2:]) for _ in range(per_moment))]
            for kind in kinds:
                files = disk.state(Choice(kind, chance))
                mark = _mark(files)
                if mark not in seen:
                    seen.add(mark)
                    yield Cut(number, kind, acknowledged, contents, files)


def _mark(files: dict[str, bytes | None]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, content in files.items():
        digest.update(b"%r %d\n" % (name, -1 if content is None else len(content)))
        digest.update(b"" if content is None or name.endswith("reserve") else content)
    return digest.digest()


def judge(workload: Workload, cut: Cut, place: str) -> Verdict:
    """Judge a state; call in a process of its own, which is then after a reboot."""
    write_state(cut.files, place)
    _reboot()
    lines = workload.lines[: cut.acknowledged]
    sent = {
        (line["topic"], value)
        for line in lines
        if (line["event"], line["kind"]) == ("did", "send") and line["topic"] != "doomed"
        for value in line["values"]
    }
    try:
        problem = _problem(cut, lines, os.path.join(place, "store"))
    except Exception as error:  # noqa: BLE001 - any is a verdict
        problem = f"{type(error).__name__}: {error}"
    return Verdict(problem, len(sent), _lost(sent, os.path.join(place, "store")) if problem else 0)


def _reboot() -> None:
    started_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 20_000_000_000
    Clock.boot_id = staticmethod(lambda: b"the-next-boot-01")  # type: ignore[method-assign]
    Clock.boot_ns = staticmethod(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started_ns)  # type: ignore[method-assign]


def _problem(cut: Cut, lines: list[Line], path: str) -> str | None:
    is_created = any((line["event"], line["kind"]) == ("did", "create") for line in lines)
    if not os.path.exists(path):
        return "an acknowledged creation is lost" if is_created else None
    with Store.open(path, read_only=True) as store:
        found = Found(store)
        found.check_levels()
        problems = store.maintenance.verify_store(full=True)
        if problems:
            return f"verify: {problems[0].message}"
    if content_digest(path) not in cut.contents:
        return "the content is that of no commit since the last acknowledgement"
    Model(lines, found).check()
    check_others(lines, path)
    with Store.open(path) as store:
        if not store.has_topic("after"):
            store.create_topic("after")
        store.create_producer("after").send(b"the cut")
        if problems := store.maintenance.verify_store(full=True):
            return f"verify after a write: {problems[0].message}"
    return None


def _lost(sent: set[tuple[str, str]], path: str) -> int:
    """Acknowledged messages that cannot be read."""
    found: set[tuple[str, str]] = set()
    try:
        with Store.open(path, read_only=True) as store:
            for topic in {topic for topic, _ in sent}:
                for message in store.reader(topic, isolation_level="READ_UNCOMMITTED"):
                    found.add((topic, (message.value or b"").decode(errors="replace")))
    except Exception:  # noqa: BLE001 - nothing more can be read
        return len(sent - found)
    return len(sent - found)


class Figures(NamedTuple):
    """Counts of a run.

    Attributes:
        kinds: states by the choice of what arrived.
        failures: what is wrong, and in how many states.
        sent, lost: acknowledged messages, summed over all states, and those that a state lost.
    """

    states: int
    kinds: Counter[str]
    failures: Counter[str]
    sent: int
    lost: int


def run(
    workload: Workload,
    states: Iterator[Cut],
    directory: str,
    *,
    at_once: int = 2,
    tell: Callable[[str], None] | None = None,
) -> Figures:
    """Judge states, `at_once` at a time, in a directory."""
    kinds, failures, sent, lost, count = Counter[str](), Counter[str](), 0, 0, 0
    slots = [os.path.join(directory, f"slot-{number}") for number in range(at_once)]

    def calls() -> Iterator[tuple[tuple[Cut, str], Callable[[], Verdict]]]:
        for cut in states:
            slot = slots.pop()
            yield (cut, slot), lambda cut=cut, slot=slot: judge(workload, cut, slot)

    _load(directory)
    for ended in in_children(calls(), at_once):
        cut, slot = ended.name
        slots.append(slot)
        count += 1
        kinds[cut.kind] += 1
        problem = ended.death if ended.result is None else ended.result.problem
        if ended.result is not None:
            sent, lost = sent + ended.result.sent, lost + ended.result.lost
        if problem is not None:
            failures[problem.splitlines()[-1][:150]] += 1
            if tell is not None:
                tell(f"event {cut.event}, {cut.kind}, {cut.acknowledged} lines acknowledged: {problem}")
    return Figures(count, kinds, failures, sent, lost)


def _load(directory: str) -> None:
    """Load the modules that a judgement needs, for all children at once."""
    place = os.path.join(directory, "loading")
    Store.create(place)
    with Store.open(place) as store:
        store.create_topic("t")
        Found(store)
        store.maintenance.verify_store(full=True)
    shutil.rmtree(place)


def main(states: int = 12_000, seed: int = 1) -> int:
    """Judge so many states, and a twentieth as many of the control; print the figures and return the failures.

    The exit is a failure too where the control loses nothing: the harness would be blind.
    """
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        workload = record(os.path.join(directory, "recorded"), 2)
        print(
            f"power cuts, seed {seed}: {len(workload.events)} calls, {len(workload.commits)} commits",
            flush=True,
        )
        # About eight distinct states an event, measured; the states are to lie in all of the workload.
        share = min(1.0, states * 1.1 / (8 * len(workload.events)))
        figures = run(workload, islice(cuts(workload, 9, seed, share=share), states), directory, tell=print)
        _print("flushes kept", figures)
        wanted = max(60, states // 20)
        ignored = cuts(workload, 2, seed, share=wanted / len(workload.events) / 2, keeps_flushes=False)
        control = run(workload, islice(ignored, wanted), directory)
        _print("flushes ignored (control)", control)
    return sum(figures.failures.values()) + (not control.failures)


def _print(name: str, figures: Figures) -> None:
    failed = sum(figures.failures.values())
    print(f"{name}: {figures.states} distinct states {dict(figures.kinds)}, {failed} unsound;")
    share = 100 * figures.lost / max(1, figures.sent)
    print(f"  {figures.lost} of {figures.sent} acknowledged messages lost ({share:.1f} %)")
    for problem, count in figures.failures.most_common(6):
        print(f"  {count} x {problem}", flush=True)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
