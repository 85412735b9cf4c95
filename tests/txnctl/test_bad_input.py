"""Hostile input at the command line: one clear error with its exit code, no traceback, nothing lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from storage import Store
from storage.disk.codec import pack, seal, unpack, unseal
from storage.disk.schema import FORMAT_NUMBER, STORE

VALUES = [b"message number %d, long enough to be found again" % number for number in range(20)]

NAMES = [
    "",
    ".",
    "..",
    "/..",
    "../orders",
    "orders/..",
    "/etc/passwd",
    "a/b",
    "a b",
    "a\nb",
    "a\0b",
    "a\x1b[31mred\x1b[0m",
    "a\u009b31m",
    "a\u202eb",
    "größe",
    "\udcff\udcfe",
    "x" * 129,
    "persistent://",
    "persistent://public/default",
    "persistent://public/default/",
    "persistent://public/default/..",
    "persistent://public/../default/x",
    "persistent://public/default/a/b",
    "non-persistent://public/default/orders",
]

POSITIONS = [
    "",
    "nonsense",
    "1",
    "1:",
    ":1",
    "1:2:3:4",
    "1:-1",
    "1:0x1",
    "01:0",
    "1:0 ",
    "1:0\n",
    "1;0",
    "\uff11:\uff10",
    "9999999999999999999999:1",
    "1:9999999999999999999999",
    "Earliest!",
    "../1:0",
    "\x1b[2J",
]

READS: list[tuple[str, ...]] = [
    ("topics", "list"),
    ("topics", "stats", "orders"),
    ("topics", "log", "orders"),
    ("store", "info"),
]
WRITES: list[tuple[str, ...]] = [
    ("topics", "create", "other"),
    ("topics", "delete", "orders", "--yes"),
]


@pytest.fixture
def path(told: Path) -> Path:
    """A store with twenty messages in `orders` and a subscription, which every command of the test is told of."""
    Store.create(told)
    with Store.open(told) as store:
        store.create_topic("orders")
        store.create_producer("orders", producer_name="p").send_batch(VALUES[:10])
        with store.transaction() as txn:
            store.create_producer("orders", producer_name="q").send_batch(VALUES[10:], txn=txn)
        store.subscribe("orders", "billing").close()
    return told


@pytest.fixture
def sound(path: Path) -> Iterator[Path]:
    """The same store, verified in full after the test, whatever the test did: all messages are there."""
    yield path
    assert values(path) == VALUES
    with Store.open(path) as store:
        assert store.maintenance.verify_store() == []


def values(path: Path) -> list[bytes | None]:
    """The values of `orders`."""
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader("orders")]


def files(path: Path) -> dict[str, bytes]:
    """What is in a directory, but for LMDB's reader table, which every reader writes into."""
    return {
        each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock.mdb" and each.is_file()
    }


def assert_refused(outcome: Any, status: int, code: str) -> None:
    """The command ended with this exit code and error, and nothing but a clean message of few lines."""
    assert outcome.status == status, outcome
    assert outcome.out == "", outcome
    assert outcome.error["code"] == code, outcome
    assert outcome.error["exitCode"] == status
    assert outcome.error["message"]
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) == 1, outcome


class Finished:
    """How a process of its own ended."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes = b"") -> None:
        out, err = process.communicate(stdin, timeout=60)
        self.status = process.returncode
        self.out = out.decode()
        self.err = err.decode()
        self.error = None

    def __repr__(self) -> str:
        return f"exit {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


def every_command(store: Path) -> Iterator[list[str]]:
    """A line for each command of the tree that opens this store, with something in the place of what it needs."""
    from txnctl.cli.click_commands import Argument, Command
    from txnctl.generate.tree import pages

    samples = {
        "topic": "orders",
        "transaction id": "0:1",
        "position": "1:0",
        "message id": "1:0",
        "integer range": "1",
        "path": "x",
    }
    for page in pages():
        if not isinstance(page.command, Command) or not page.command.declaration.opens:
            continue
        if page.title in ("txnctl store init", "txnctl demo", "txnctl config show", "txnctl pipeline run"):
            continue
        if page.title in ("txnctl doctor", "txnctl check"):
            continue  # to them it is a finding
        line = [*page.title.split()[1:], "--store", str(store)]
        for parameter in page.command.params:
            if not parameter.required:
                continue
            if not isinstance(parameter, Argument):
                line.append(parameter.opts[0])
            line.append(samples.get(parameter.type.name, "billing"))
        yield [*line, "x"] if page.title == "txnctl pipeline export" else line


class TestNames:
    """A name is never a path and never drives a terminal."""

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    @pytest.mark.parametrize("verb", ["create", "show", "stats", "stats-internal", "peek", "log", "delete"])
    def test_a_hostile_topic_name_is_bad_input(self, run: Any, sound: Path, verb: str, name: str) -> None:
        """Exit 2, and neither the store nor what lies around it changed."""
        before = files(sound)
        around = sorted(sound.parent.iterdir())
        assert_refused(run("topics", verb, "-o", "json", "--", name), 2, "invalid-name")
        assert files(sound) == before
        assert sorted(sound.parent.iterdir()) == around

    @pytest.mark.parametrize("name", ["a\x1b[31mred\x1b[0m", "a\u009b31m", "a\u202eb", "a\nb"], ids=ascii)
    @pytest.mark.parametrize("form", ["table", "json"])
    @pytest.mark.usefixtures("sound")
    def test_a_name_in_an_error_cannot_drive_the_terminal(self, run: Any, name: str, form: str) -> None:
        """Control characters come back written out, in both forms of error."""
        outcome = run("topics", "create", name, "-o", form)
        assert outcome.status == 2
        assert outcome.err.removesuffix("\n").replace("\n", "").isprintable(), outcome

    @pytest.mark.parametrize(
        "verb", ["show", "stats", "stats-internal", "positions", "peek", "log", "last-message-id"]
    )
    @pytest.mark.usefixtures("sound")
    def test_an_unknown_topic_is_not_found_and_near_names_are_named(self, run: Any, verb: str) -> None:
        """Exit 3 with a hint that can be followed."""
        outcome = run("topics", verb, "order", "-o", "json")
        assert_refused(outcome, 3, "topic-not-found")
        assert "orders" in outcome.error["hint"]

    @pytest.mark.usefixtures("sound")
    def test_deleting_an_unknown_topic_deletes_nothing(self, run: Any) -> None:
        """Also where the name is nearly right."""
        assert_refused(run("topics", "delete", "order", "--yes", "-o", "json"), 3, "topic-not-found")


class TestPositions:
    """A position is what it says, or bad input."""

    @pytest.mark.parametrize("text", POSITIONS, ids=ascii)
    @pytest.mark.usefixtures("sound")
    def test_a_malformed_position_is_bad_input(self, run: Any, text: str) -> None:
        """Exit 2, in the same words wherever a position is taken."""
        for command in ("peek", "log"):
            option = "--from" if command == "peek" else "--range"
            outcome = run("topics", command, "orders", option, text, "-o", "json")
            assert outcome.status == 2, outcome
            assert outcome.out == ""
            assert outcome.error["code"] in ("invalid-position", "invalid-value"), outcome
            assert option in outcome.error["message"]
            assert outcome.error["hint"]

    @pytest.mark.parametrize("text", ["2:0", "1:9999", "999999:0", "1:0:99"])
    @pytest.mark.usefixtures("sound")
    def test_a_position_beyond_the_end_shows_nothing(self, run: Any, text: str) -> None:
        """It is a position all right; there is only nothing there."""
        outcome = run("topics", "log", "orders", "--range", f"{text}..", "-o", "json")
        assert outcome.status == 0, outcome
        assert isinstance(outcome.json, list)


class TestPlaces:
    """What lies at the path is no store, or not one that can be trusted."""

    @pytest.mark.parametrize(("command", "status"), [("doctor", 6), ("check", 3)])
    def test_a_missing_path_is_a_finding_and_stays_missing(
        self, run: Any, tmp_path: Path, command: str, status: int
    ) -> None:
        """They report on whatever is there, and fail as all others do; to monitoring it is unknown."""
        outcome = run(command, "--exit-code", "--store", str(tmp_path / "nowhere"))
        assert outcome.status == status, outcome
        assert "there is no store at" in " ".join(outcome.out.split()).lower(), outcome
        assert not list(tmp_path.iterdir())

    def test_a_missing_path_is_refused_by_all_commands_and_stays_missing(
        self, run: Any, tmp_path: Path
    ) -> None:
        """No command but `store init` and `demo` creates anything."""
        at = tmp_path / "deep" / "nowhere"
        seen = 0
        for command in every_command(at):
            outcome = run(*command, stdin=b"hello")
            assert outcome.status == 6, (command, outcome)
            assert "there is no store at" in outcome.err, (command, outcome)
            assert "Traceback" not in outcome.err
            assert not list(tmp_path.iterdir()), command
            seen += 1
        assert seen > 30

    @pytest.mark.parametrize("command", READS + WRITES, ids=" ".join)
    def test_a_directory_that_is_no_store_is_left_alone(
        self, run: Any, tmp_path: Path, command: tuple[str, ...]
    ) -> None:
        """Neither an empty one nor one with other files in it."""
        for name, content in (("empty", None), ("photos", "holiday.jpg"), ("near", "data.mdb")):
            at = tmp_path / name
            at.mkdir(mode=0o700)
            if content:
                (at / content).write_bytes(b"not yours" * 4096)
                (at / content).chmod(0o600)
            before = files(at)
            assert_refused(run(*command, "--store", str(at), "-o", "json"), 6, "not-a-store")
            assert files(at) == before
            assert not (at / "lock.mdb").exists()

    def test_a_file_is_not_a_store(self, run: Any, tmp_path: Path) -> None:
        """A path that names a file, or goes through one."""
        at = tmp_path / "file"
        at.write_text("hello")
        assert_refused(run("topics", "list", "--store", str(at), "-o", "json"), 6, "not-a-store")
        assert run("topics", "list", "--store", str(at / "below")).status == 6
        assert_refused(run("store", "init", str(at), "-o", "json"), 4, "already-exists")
        assert run("store", "init", str(at / "below")).status == 6
        assert at.read_text() == "hello"

    @pytest.mark.parametrize("command", [READS[0], WRITES[0]], ids=" ".join)
    def test_another_lmdb_file_is_not_a_store(
        self, run: Any, tmp_path: Path, command: tuple[str, ...]
    ) -> None:
        """Whoever it belongs to finds it as it was."""
        at = tmp_path / "theirs"
        at.mkdir(mode=0o700)
        with lmdb.open(str(at), mode=0o600) as theirs, theirs.begin(write=True) as txn:
            txn.put(b"their", b"data")
        before = files(at)
        assert_refused(run(*command, "--store", str(at), "-o", "json"), 6, "not-a-store")
        assert files(at) == before

    @pytest.mark.parametrize("command", READS + WRITES, ids=" ".join)
    @pytest.mark.parametrize("what", ["", "data.mdb"])
    @pytest.mark.parametrize("mode", [0o020, 0o002])
    def test_a_store_that_others_may_write_is_refused(
        self, run: Any, sound: Path, command: tuple[str, ...], what: str, mode: int
    ) -> None:
        """Directory or file, group or world; the hint says what to do about it."""
        target = sound / what
        rights = target.stat().st_mode
        target.chmod(rights | mode)
        outcome = run(*command, "-o", "json")
        assert_refused(outcome, 6, "store-unsafe")
        assert "chmod" in outcome.error["hint"]
        target.chmod(rights)

    @pytest.mark.parametrize("command", READS + WRITES, ids=" ".join)
    def test_a_linked_data_file_is_refused(self, run: Any, sound: Path, command: tuple[str, ...]) -> None:
        """LMDB would follow it."""
        data, elsewhere = sound / "data.mdb", sound.parent / "elsewhere.mdb"
        data.rename(elsewhere)
        data.symlink_to(elsewhere)
        assert_refused(run(*command, "-o", "json"), 6, "store-unsafe")
        data.unlink()
        elsewhere.rename(data)


class TestFormats:
    """A store of another release."""

    @pytest.mark.parametrize("command", READS + WRITES, ids=" ".join)
    @pytest.mark.parametrize("number", [0, FORMAT_NUMBER + 1, 1 << 40])
    def test_an_unknown_format_is_refused_untouched(
        self, run: Any, path: Path, command: tuple[str, ...], number: int
    ) -> None:
        """Both numbers are named, and no byte changes."""
        with lmdb.open(str(path), max_dbs=64) as raw, raw.begin(write=True) as txn:
            database = raw.open_db(b"store", txn=txn, create=False)
            record = unpack(unseal(STORE, b"format", txn.get(b"format", db=database)))
            record[0] = number
            txn.put(b"format", seal(STORE, b"format", pack(record)), db=database)
        # Whoever passes the writer gate signs here: a store that is refused is left untouched in this too.
        with (path / "store.lock").open("r+b") as lock:
            lock.seek(64)
            lock.write(bytes(16))
        before = files(path)
        outcome = run(*command, "-o", "json")
        assert_refused(outcome, 6, "unknown-format")
        assert str(number) in outcome.error["message"]
        assert str(FORMAT_NUMBER) in outcome.error["message"]
        assert files(path) == before


class TestDamage:
    """A damaged data file. Every command runs as a process of its own: a missing page would kill this one."""

    @pytest.mark.parametrize("keep", [0, 1, 100, 4096, 8191, 8192, 0.5, -1])
    def test_a_truncated_file_is_refused(self, start: Any, path: Path, keep: float) -> None:
        """Before any of its missing pages is touched, and nothing more of it is lost."""
        from storage import Store

        with Store.open(path) as store:
            store.maintenance.compact_store()  # without the room that is kept at its end, every page is needed
        data = path / "data.mdb"
        whole = data.read_bytes()
        size = len(whole)
        os.truncate(data, int(size * keep) if 0 < keep < 1 else int(keep) % size)
        before = files(path)
        running = [start(*command, "-o", "json") for command in (READS[1], WRITES[0], ("store", "verify"))]
        for ended in [Finished(process) for process in running]:
            assert ended.status == 6, ended
            assert "Traceback" not in ended.err
        assert files(path) == before
        data.write_bytes(whole)
        assert values(path) == VALUES

    def test_a_flipped_bit_in_a_message_is_found_by_whoever_reads_it(self, start: Any, path: Path) -> None:
        """And by verify, which names the record. Nobody is shown the message."""
        flip(path / "data.mdb", VALUES[3])
        for command in (("topics", "peek", "orders", "-n", "20"), ("store", "verify")):
            ended = Finished(start(*command, "-o", "json"))
            assert ended.status == 6, ended
            assert "Traceback" not in ended.err
            assert "message number 3" not in ended.out
            assert "entries" in ended.err + ended.out

    @pytest.mark.parametrize("seed", range(3))
    def test_no_flipped_bit_ends_in_a_traceback(self, start: Any, path: Path, seed: int) -> None:
        """Wherever it is: the store is verified in a process of its own, whose death is a finding too."""
        data = path / "data.mdb"
        whole = data.read_bytes()
        damaged = bytearray(whole)
        place = (seed * 2_654_435_761 + 977) % len(whole)
        damaged[place] ^= 1 << seed
        data.write_bytes(damaged)
        running = [start(*command, "-o", "json") for command in (("store", "verify"), ("topics", "list"))]
        verified, listed = [Finished(process) for process in running]
        assert verified.status in (0, 6), verified
        assert "Traceback" not in verified.err + listed.err
        data.write_bytes(whole)
        assert values(path) == VALUES

    def test_a_page_of_noise_is_a_finding_of_verify(self, start: Any, path: Path) -> None:
        """It leads LMDB's reader astray in one way or another; verify lives to tell, and exits with 6."""
        data = path / "data.mdb"
        content = bytearray(data.read_bytes())
        at = content.find(VALUES[3])
        while at >= 0:
            page = at // 4096 * 4096
            content[page : page + 4096] = bytes(range(256)) * 16
            at = content.find(VALUES[3])
        data.write_bytes(content)
        ended = Finished(start("store", "verify", "-o", "json"))
        assert ended.status == 6, ended
        assert "Traceback" not in ended.err
        assert '"ok": false' in ended.out


def flip(data: Path, needle: bytes) -> None:
    """Flip one bit in the middle of these bytes, wherever the file holds them."""
    content = bytearray(data.read_bytes())
    at = content.find(needle)
    assert at >= 0
    while at >= 0:
        content[at + len(needle) // 2] ^= 4
        at = content.find(needle, at + 1)
    data.write_bytes(content)


class TestFullDisk:
    """The disk is full: what was acknowledged stays, what was not leaves no trace."""

    @pytest.mark.usefixtures("sound")
    def test_a_message_that_does_not_fit_is_refused_whole(self, start: Any, path: Path) -> None:
        """The limit on file size stands for the disk. Looking goes on working, and so does the next small write."""
        room = (path / "data.mdb").stat().st_size
        process = start("produce", "orders", "--input", "raw", "-o", "json", preexec_fn=limit_files(room))
        ended = Finished(process, b"x" * 1_000_000)
        assert ended.status == 6, ended
        assert '"code":"store-full"' in ended.err, ended
        assert "Traceback" not in ended.err
        assert Finished(start("topics", "stats", "orders", preexec_fn=limit_files(room))).status == 0

    def test_a_bulk_write_keeps_the_batches_before(self, start: Any, path: Path) -> None:
        """Whole batches up to some point, each message in its place, and nothing after."""
        lines = [b"%06d %s" % (number, b"x" * 1000) for number in range(2000)]
        room = (path / "data.mdb").stat().st_size + 1_000_000
        process = start("produce", "orders", "--batch", "100", "-o", "json", preexec_fn=limit_files(room))
        ended = Finished(process, b"\n".join(lines))
        assert ended.status == 6, ended
        assert '"code":"store-full"' in ended.err, ended
        stored = values(path)[len(VALUES) :]
        assert stored == lines[: len(stored)]
        assert 0 < len(stored) < len(lines)
        assert len(stored) % 100 == 0
        with Store.open(path) as store:
            assert store.maintenance.verify_store() == []

    def test_a_store_that_does_not_fit_is_not_begun(self, start: Any, tmp_path: Path) -> None:
        """`store init` leaves nothing behind."""
        for room in (0, 4096, 20_000):
            ended = Finished(
                start("store", "init", str(tmp_path / "s"), "-o", "json", preexec_fn=limit_files(room))
            )
            assert ended.status == 6, ended
            assert '"code":"store-full"' in ended.err, ended
            assert list(tmp_path.iterdir()) == []

    def test_a_copy_that_does_not_fit_is_not_begun(self, start: Any, path: Path, tmp_path: Path) -> None:
        """Neither a backup nor a restored store is left behind in parts."""
        names = sorted(each.name for each in tmp_path.iterdir())
        for command in (
            ["backup", str(tmp_path / "new")],
            ["restore", str(path), "--to", str(tmp_path / "new")],
        ):
            ended = Finished(start("store", *command, "-o", "json", preexec_fn=limit_files(20_480)))
            assert ended.status == 6, ended
            assert '"code":"store-full"' in ended.err, ended
            assert sorted(each.name for each in tmp_path.iterdir()) == names


def limit_files(room: int) -> Callable[[], None]:
    """For a child: no file may grow beyond `room` bytes."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return limit
