"""The JSON of every command is the one in golden.ndjson: keys, their order, types and values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.golden.machine import commands_with_formats
from tests.golden.make import GOLDEN
from tests.golden.masks import SENTENCE, Mask, difference

CHECKOUT = Path(__file__).parents[2]

NOT_PLAYED = {
    "pipeline ingest": "starts a JVM; tests/txnctl/spark has it",
    "pipeline export": "starts a JVM; tests/txnctl/spark has it",
    "pipeline offload": "needs whole closed ledgers and PyArrow; tests/txnctl/commands/pipeline/test_offload.py has it",
    "pipeline monitor": "starts a JVM; tests/txnctl/spark has it",
    "pipeline settle": "has two engines, and one is a JVM; tests/txnctl/commands/pipeline/test_engine.py has both",
    "pipeline audit": "has two engines, and one is a JVM; tests/txnctl/commands/pipeline/test_engine.py has both",
    "pipeline sql": "starts a JVM; tests/txnctl/pipelines/test_sql.py has it",
}
"""Commands with JSON of which only the names and types of the fields are in the golden file, and why."""


def records(path: Path) -> dict[str, Any]:
    """The records of a golden file by the name of their case."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["case"]: row for row in rows}


def test_the_json_of_every_command_is_that_of_the_golden_file(tmp_path: Path):
    """A separate process plays the scenario on the fixed machine, from any directory."""
    target = tmp_path / "found.ndjson"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    words = [sys.executable, "-m", "tests.golden.make", str(target)]
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=300)
    wanted, found = records(GOLDEN), records(target)
    told = [
        f"{case}: {difference(wanted[case], found[case])}"
        for case in wanted
        if case in found and difference(wanted[case], found[case])
    ]
    assert told[:20] == []
    assert list(found) == list(wanted)


def test_every_command_with_json_is_in_the_golden_file():
    """A command succeeds at least once in JSON, and the fields that `-o help` lists are there."""
    cases = records(GOLDEN)
    for command, formats in commands_with_formats().items():
        if not {"json", "ndjson"} & {*formats}:
            continue
        told = [row["out"] for case, row in cases.items() if case.startswith((f"{command} ", f"{command}#"))]
        assert any(isinstance(out, dict | list) for out in told), command
        if "help" in formats:
            assert cases[f"{command} -o help #1"]["out"], command
        played = [
            case
            for case, row in cases.items()
            if case.startswith(f"{command} ") and row["exit"] in (0, 8) and " -o help " not in case
        ]
        assert bool(played) is (command not in NOT_PLAYED), command


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": "1"}, {"a": 1}),
        ({"a": None}, {}),
        ([1, 2], [1]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}),
    ],
)
def test_keys_order_types_and_values_are_compared(wanted: Any, found: Any):
    assert difference(wanted, found) is not None
    assert difference(wanted, wanted) is None


def test_a_sentence_stays_a_text_and_null_stays_null():
    mask = Mask("/somewhere/stores", {77: 5_000_001})
    row = {
        "message": "no",
        "hint": None,
        "path": "/somewhere/stores/bank",
        "pid": 77,
        "count": 77,
        "elapsedMs": 3,
    }
    masked = {**row, "message": SENTENCE, "path": "/golden/bank", "pid": 5_000_001, "elapsedMs": 0}
    assert mask.value(row, set()) == masked
