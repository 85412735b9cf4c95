"""`--json-schema` of every command, against the JSON that commands really print: the recorded run of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from txnctl.cli.aliases import ALIASES
from txnctl.cli.click_commands import Command
from txnctl.generate.tree import Page, pages
from txnctl.output.json_schema import DIALECT, schema_of

GOLDEN = Path(__file__).parents[2] / "golden" / "golden.ndjson"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
"""The newest dialect of the validator; what the schemas use means the same in both."""

COMMANDS = {page.path[1:]: page for page in pages() if isinstance(page.command, Command)}


def page_of(words: list[str]) -> Page | None:
    full = tuple(ALIASES.get(word, word) for word in words[:2])
    return COMMANDS.get(full) or COMMANDS.get(full[:1])


def unmasked(value: Any) -> Any:
    """Values that the recorded run leaves open are unknown."""
    if isinstance(value, dict):
        return {name: unmasked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unmasked(item) for item in value]
    return None if value == "(free)" else value


def recorded() -> Iterator[tuple[str, Page, Any]]:
    """Case, command and result of each recorded run that ended well with JSON."""
    for line in GOLDEN.read_text().splitlines():
        case = json.loads(line)
        if " -o json" not in case["case"] or case["exit"] != 0 or isinstance(case["out"], str):
            continue
        page = page_of(case["case"].split())
        if page is not None and page.command.declaration.output is not None:
            yield case["case"], page, unmasked(case["out"])


def compiled(page: Page) -> Any:
    output = page.command.declaration.output
    schema = schema_of(page.title, output.fields, partial=output.partial)
    assert schema["$schema"] == DIALECT
    return fastjsonschema.compile({**json.loads(json.dumps(schema)), "$schema": DRAFT_07})


def test_recorded_results_fit_their_schemas() -> None:
    """Every recorded result of every command is valid, and has no field that its schema does not name."""
    validators: dict[str, Any] = {}
    checked = set()
    for case, page, result in recorded():
        if page.title not in validators:
            validators[page.title] = compiled(page)
        try:
            validators[page.title](result)
        except fastjsonschema.JsonSchemaException as error:
            pytest.fail(f"{case}: {error.message}")
        checked.add(page.title)
    assert len(checked) > 50


def test_every_command_with_a_result_has_a_schema() -> None:
    """The schema compiles, and names every field of `-o help`."""
    number = 0
    for page in COMMANDS.values():
        output = page.command.declaration.output
        if output is None:
            continue
        compiled(page)
        row = schema_of(page.title, output.fields)["$defs"]["row"]
        assert list(row["properties"]) == [field.name for field in output.fields], page.title
        number += 1
    assert number > 80


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({}, True),
        ({"later": 1}, True),
        ({"messages": None}, True),
        ({"messages": "15"}, False),
        ({"topics": "orders"}, False),
        ({"topics": [1]}, False),
        ({"labels": {"job": 1}}, False),
    ],
)
def test_a_schema_tells_right_from_wrong(change: dict[str, Any], is_valid: bool) -> None:
    """A wrong type is refused, at any depth; a field of a later version is not."""
    page = COMMANDS["transactions", "list"]
    (row,) = next(
        result for case, _, result in recorded() if case.startswith("transactions list") and len(result) == 1
    )
    try:
        compiled(page)([row | change])
    except fastjsonschema.JsonSchemaException:
        assert not is_valid
    else:
        assert is_valid


def test_the_option_prints_it(run: Any) -> None:
    """It wants no arguments and no store."""
    printed = run("transactions", "explain", "--json-schema").json
    assert printed["title"] == "txnctl transactions explain"
    assert printed["$schema"] == DIALECT
