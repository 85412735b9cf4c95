"""`txnctl producers show`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from storage import AccessMode, Store
from tests.txnctl.commands.producers.producers_steps import ended, producing, rows, send, values
from tests.waiting import let_pass, wait_for
from txnctl.commands.producers.show import SHOWN
from txnctl.commands.topics.stats import STATS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


class TestModes:
    """`produce --access-mode`."""

    @pytest.mark.parametrize(
        "words", [("-m", "b"), ("-m", "b", "--access-mode", "exclusive"), ("--access-mode", "Shared"), ()]
    )
    def test_an_exclusive_owner_keeps_others_out(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """Exit 4 at once, naming the owner and the command that tells more; nothing is stored."""
        with producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner:
            refused = run("produce", "orders", *words, "-o", "json", stdin=b"b\n")
            assert (refused.status, refused.error["code"]) == (4, "producer-busy")
            assert refused.error["details"]["owner"] == "loader"
            assert "loader" in refused.error["message"]
            assert str(owner.pid) in refused.error["message"]
            assert "txnctl producers show orders" in refused.error["hint"]
            assert ended(owner, b"a\n")[0] == 0
        assert values(path) == [b"a"]

    def test_who_is_fenced_midway_is_told_with_the_last_line_stored(self, run: Any, path: Path) -> None:
        """Exit 4; what it stored before stands, what it reads after is never stored."""
        with producing(path, "--access-mode", "exclusive", "--producer", "old") as old:
            send(old, b"1\n2\n")
            wait_for(lambda: values(path) == [b"1", b"2"], "a slow pipe's lines are stored")
            fencing = ("--access-mode", "exclusive-with-fencing", "--producer", "new")
            assert run("produce", "orders", "-m", "new", *fencing).status == 0
            status, err = ended(old, b"3\n")
        assert status == 4
        assert "at least 2 messages are stored, the last one from line 2" in err
        assert "producer old of topic orders is fenced" in err
        assert "txnctl producers show orders" in err
        assert values(path) == [b"1", b"2", b"new"]


class TestShow:
    """`producers show`: why a producer cannot connect, on one screen."""

    def test_of_a_free_topic(self, run: Any) -> None:
        """Everybody may come, and nothing needs doing."""
        row = run("producers", "show", "orders", "-o", "json").json
        assert not undeclared(row, SHOWN)
        assert {field.name for field in SHOWN} == set(row)
        assert (row["topicEpoch"], row["owner"], row["history"], row["next"]) == (None, None, [], None)
        assert {each["accessMode"]: each["result"] for each in row["admission"]} == {
            "Shared": "connects", "Exclusive": "owns", "WaitForExclusive": "owns", "ExclusiveWithFencing": "owns"
        }  # fmt: skip
        out = run("producers", "show", "orders").out
        assert "no topicEpoch yet, nobody is connected" in out
        assert "Next" not in out
        assert run("producers", "show", "nowhere").status == 3

    def test_it_names_the_owner_and_what_to_do(self, run: Any, path: Path) -> None:
        """What each mode would meet is what it does meet; the next command can be typed as it stands."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner,
            producing(path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True),
        ):
            row = run("producers", "show", "orders", "-o", "json").json
            out = run("producers", "show", "orders").out
            met = {
                mode: run("produce", "orders", "-m", "x", "--access-mode", mode, *timeout).status
                for mode, timeout in (
                    ("Shared", ()),
                    ("Exclusive", ()),
                    ("WaitForExclusive", ("--timeout", "10ms")),
                )
            }
            assert run(*row["next"].split()[1:]).status == 0
        assert {each["accessMode"]: each["result"] for each in row["admission"]} == {
            "Shared": "busy", "Exclusive": "busy", "WaitForExclusive": "waits", "ExclusiveWithFencing": "takes over"
        }  # fmt: skip
        assert met == {"Shared": 4, "Exclusive": 4, "WaitForExclusive": 7}
        assert (row["owner"]["producerName"], row["owner"]["pid"]) == ("loader", owner.pid)
        assert (row["waitingPublishers"], row["waiting"][0]["producerName"]) == (1, "second")
        assert "topicEpoch 0, owned by loader, 1 waiting" in out
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert "Exclusive be refused: loader has the topic for itself" in lines
        assert "WaitForExclusive wait: loader has the topic for itself, 1 before it" in lines
        assert "ExclusiveWithFencing evict 2 producers and own the topic" in lines
        assert out.endswith("Next: txnctl producers fence orders --dry-run\n")

    def test_a_stopped_owner_is_explained(self, run: Any, path: Path) -> None:
        """It keeps its place; with the command that lets it go on."""
        with producing(path, "--access-mode", "exclusive") as owner:
            owner.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[0]["state"] == "stopped", "it is called stopped")
            out = run("producers", "show", "orders").out
            assert f"kill -CONT {owner.pid} lets it go on" in out
            assert "\x1b[33mstopped\x1b[0m" in run("producers", "show", "orders", "--color", "always").out

    def test_a_dead_owner_is_in_nobodys_way(self, run: Any, path: Path) -> None:
        """Killed outright, it shows as dead at once, and the next one gets the topic."""
        with producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner:
            owner.kill()
            owner.wait()
            row = run("producers", "show", "orders", "-o", "json").json
            out = run("producers", "show", "orders").out
            listed = run("producers", "list").out.splitlines()[1]
        assert (row["owner"], row["next"]) == (None, None)
        assert "topicEpoch 0, nobody is connected" in out
        assert "was owner" in listed
        assert [each["state"] for each in row["publishers"]] == ["dead"]
        assert "DEAD" in out
        assert "loader is gone: the next producer that connects removes it" in out
        assert run("produce", "orders", "-m", "a", "--access-mode", "exclusive").status == 0
        history = run("producers", "show", "orders", "-o", "json").json["history"]
        assert [each["endedBy"] for each in history] == ["closed", "dead"]

    def test_the_history_tells_how_each_ended(self, run: Any) -> None:
        """The newest first; as many as asked for."""
        run("producers", "open", "orders", "--producer", "first")
        run("produce", "orders", "-m", "a", "--access-mode", "exclusivewithfencing", "--producer", "second")
        run("producers", "fence", "orders", "--yes")
        row = run("producers", "show", "orders", "-o", "json").json
        assert [
            (
                each["topicEpoch"],
                each["producerName"],
                each["accessMode"],
                each["endedBy"],
                each["takenOverBy"],
            )
            for each in row["history"]
        ] == [
            (2, None, "fence", "closed", None),
            (1, "second", "ExclusiveWithFencing", "closed", None),
            (0, "first", "Exclusive", "fenced", 1),
        ]
        lines = [" ".join(line.split()) for line in run("producers", "show", "orders").out.splitlines()]
        assert any("0 first Exclusive" in line and "fenced by epoch 1" in line for line in lines)
        assert any("1 second ExclusiveWithFencing" in line and "after 1:-1 to 1:0" in line for line in lines)
        limited = run("producers", "show", "orders", "-n", "1", "-o", "json").json
        assert [each["topicEpoch"] for each in limited["history"]] == [2]

    def test_a_long_history_is_there_when_asked_for(self, run: Any, path: Path) -> None:
        """More than one screen holds."""
        with Store.open(path) as store:
            for _ in range(30):
                store.create_producer("orders", access_mode=AccessMode.EXCLUSIVE).close()
        assert len(run("producers", "show", "orders", "-o", "json").json["history"]) == 10
        assert len(run("producers", "show", "orders", "-n", "25", "-o", "json").json["history"]) == 25
        assert len(run("producers", "show", "orders", "-n", "1000", "-o", "json").json["history"]) == 30

    def test_looking_changes_nothing(self, run: Any, path: Path) -> None:
        """Not a byte, whoever is there, dead ones too."""
        run("producers", "open", "orders", "--lease", "1ms")
        let_pass(0.005, "the lease")
        before = (path / "data.mdb").read_bytes()
        for command in (("list",), ("show", "orders")):
            assert run("producers", *command).status == 0
        assert (path / "data.mdb").read_bytes() == before


class TestTopics:
    """What the reports about topics say of producers."""

    def test_stats_have_the_table_of_the_contract(self, run: Any, path: Path) -> None:
        """PRODUCER MODE EPOCH OWNER ALIVE LAST PUBLISH; Pulsar's names in JSON."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "payments-loader") as owner,
            producing(path, "--access-mode", "wait-for-exclusive", waits=True),
        ):
            send(owner, b"one\n")
            wait_for(lambda: values(path) == [b"one"], "stored")
            row = run("topics", "stats", "orders", "-o", "json").json
            assert not undeclared(row, STATS)
            out = run("topics", "stats", "orders").out
            shown = run("topics", "show", "orders", "-o", "json").json
            listed = run("topics", "list", "-o", "json").json[0]
        (publisher,) = row["publishers"]
        assert (publisher["accessMode"], publisher["producerName"], publisher["epoch"]) == (
            "Exclusive",
            "payments-loader",
            0,
        )
        assert (publisher["state"], publisher["alive"]) == ("alive", True)
        assert publisher["connectedSinceMs"] <= publisher["lastPublishMs"] <= row["asOfMs"]
        assert (row["topicEpoch"], row["waitingPublishers"]) == (0, 1)
        lines = out.splitlines()
        assert lines[1].endswith("topicEpoch 0")
        at = next(index for index, line in enumerate(lines) if "PRODUCER" in line)
        assert lines[at].split() == ["PRODUCER", "MODE", "EPOCH", "OWNER", "ALIVE", "LAST", "PUBLISH"]
        cells = lines[at + 1].split()
        assert cells[:5] == ["payments-loader", "Exclusive", "0", f"{os.uname().nodename}:{owner.pid}", "yes"]
        assert "  1 producer waits for the topic" in lines
        assert lines[-1] == "Next: txnctl producers show orders"
        assert (shown["publishers"], shown["waitingPublishers"]) == (["payments-loader"], 1)
        assert listed["topicEpoch"] == 0
