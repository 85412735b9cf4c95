"""`txnctl topics compact`, its settings, and `consume --read-compacted`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.cli.declaration import declaration_of
from txnctl.commands.topics import compact
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def colours(run: Any) -> str:
    """A topic with two messages of one key and a plain one, in ledgers of one entry."""
    run("topics", "create", "colours", "--ledger-entries", "1")
    for arguments in (("-k", "sky", "-m", "grey"), ("-k", "sky", "-m", "blue"), ("-m", "remark")):
        run("produce", "colours", *arguments)
    return "colours"


def values(run: Any, *arguments: str) -> list[str]:
    """The values that `consume` prints."""
    lines: list[str] = run("consume", "colours", *arguments, "-o", "value").out.splitlines()
    return lines


def test_a_compacted_topic_is_read_with_and_without_the_option(run: Any, colours: str) -> None:
    """The dry run says how much; the run what the view has."""
    assert "Would compact 3 messages of colours" in run("topics", "compact", colours, "--dry-run").out
    assert values(run, "--read-compacted") == ["grey", "blue", "remark"]
    row = run("topics", "compact", colours, "--reason", "monthly", "-o", "json").json
    output = declaration_of(compact.compact).output
    assert output is not None
    assert not undeclared(row, output.fields)
    assert (row["examined"], row["messages"], row["horizon"]) == (3, 2, "3:0")
    assert values(run, "--read-compacted") == ["blue", "remark"]
    assert values(run) == ["grey", "blue", "remark"]
    shown = run("topics", "show", colours, "-o", "json").json["compaction"]
    assert (shown["messages"], shown["uncompactedBytes"]) == (2, 0)
    assert "compacted   up to 3:0: 2 messages" in run("topics", "stats", colours).out


def test_a_subscription_reads_the_view_of_a_trimmed_topic(run: Any, colours: str) -> None:
    """From its first message on; a type that shares messages out is refused with a way on."""
    run("topics", "compact", colours)
    run("topics", "config", colours, "--retention-time", "0")
    run("topics", "trim", colours)
    subscribed = ("-s", "state", "--from", "earliest", "--read-compacted")
    assert values(run, *subscribed) == ["blue", "remark"]
    assert values(run, *subscribed) == []
    shared = run("consume", colours, "-s", "pool", "--subscription-type", "shared", "--read-compacted")
    assert (shared.status, "Exclusive and Failover" in shared.err) == (2, True)
    dirty = run("consume", colours, "--isolation-level", "read-uncommitted", "--read-compacted")
    assert (dirty.status, "READ_COMMITTED" in dirty.err) == (2, True)


def test_what_is_not_compacted_is_named_as_what_holds_messages_back(run: Any, colours: str) -> None:
    """With the command that goes on."""
    run("topics", "compact", colours)
    run("topics", "config", colours, "--retention-time", "0")
    run("produce", colours, "-k", "sky", "-m", "red")
    out = run("topics", "trim", colours).out
    assert "Held back by the compacted view, which ends at 3:0" in out
    assert "txnctl topics compact colours" in out
    assert run("topics", "show", colours, "-o", "json").json["heldBy"] == "compaction 3:0"


def test_threshold_and_tombstone_retention_are_settings_of_the_topic(run: Any, colours: str) -> None:
    """A dry run changes neither; `unset` takes the threshold away."""
    run("topics", "config", colours, "--compaction-threshold", "1K", "--dry-run")
    row = run("topics", "config", colours, "-o", "json").json
    assert (row["compactionThresholdBytes"], row["tombstoneRetentionMs"]) == (None, 86_400_000)
    out = run("topics", "config", colours, "--compaction-threshold", "1K", "--tombstone-retention", "7d").out
    assert "compaction      at 1.0 KiB, tombstones stay 7d00h" in out
    row = run("topics", "config", colours, "--compaction-threshold", "unset", "-o", "json").json
    assert (row["compactionThresholdBytes"], row["tombstoneRetentionMs"]) == (None, 7 * 86_400_000)
    assert run("topics", "config", colours, "--compaction-threshold", "some").status == 2


def test_removing_a_view_asks_first(run: Any, colours: str) -> None:
    """Without a terminal it needs --yes; the freeable list names the command."""
    run("topics", "compact", colours)
    assert "topics compact --remove colours" in run("store", "space", "--freeable").out
    assert run("topics", "compact", colours, "--remove").status == 9
    assert "removed 2 messages" in run("topics", "compact", colours, "--remove", "--yes").out
    assert values(run, "--read-compacted") == ["grey", "blue", "remark"]


def test_a_subscription_reaches_before_the_log(run: Any, colours: str) -> None:
    """Created or moved there; the way back is named with the option."""
    run("topics", "compact", colours)
    run("topics", "config", colours, "--retention-time", "0")
    run("topics", "trim", colours)
    run("subscriptions", "create", colours, "s", "--from", "earliest", "--read-compacted")
    assert values(run, "-s", "s", "--read-compacted") == ["blue", "remark"]
    run("subscriptions", "seek", colours, "s", "earliest")
    assert "blue" not in values(run, "-s", "s", "--read-compacted")
    out = run("subscriptions", "seek", colours, "s", "earliest", "--read-compacted").out
    assert f"seek {colours} s" in out
    assert "--read-compacted" in out
    assert values(run, "-s", "s", "--read-compacted") == ["blue", "remark"]
