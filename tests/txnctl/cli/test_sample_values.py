"""Samples of values: `txnctl/cli/sample_values.py`. Over all options: `tests/txnctl/test_usage_errors.py`."""

from __future__ import annotations

import click
import pytest

from storage import Store
from txnctl.cli.click_commands import Argument, Option
from txnctl.cli.sample_values import expected_value, sample_value
from txnctl.cli.value_types import DURATION
from txnctl.generate.tree import pages


@pytest.mark.parametrize(
    ("title", "shown"), [("txnctl topics stats", "payments"), ("txnctl topics delete", "orders")]
)
def test_a_command_that_reads_is_shown_with_a_name_of_the_store(
    store_path: str, monkeypatch: pytest.MonkeyPatch, title: str, shown: str
) -> None:
    """A command that changes is not: nobody pastes the deletion of a topic that is there."""
    with Store.open(store_path) as store:
        store.admin.topics.delete_topic("orders")
        store.create_topic("payments")
    monkeypatch.setenv("TXNCTL_STORE", store_path)
    (page,) = [each for each in pages() if each.title == title]
    (topic,) = [each for each in page.command.params if isinstance(each, Argument)]
    assert sample_value(topic, page.context) == shown


def test_the_expected_value_is_said_in_words() -> None:
    """The forms of a grammar, or the word in the help."""
    context = click.Context(click.Command("probe"))
    assert expected_value(Option(["--for"], type=DURATION), context) == DURATION.expected
    assert expected_value(Option(["--owner"], metavar="TEXT"), context) == "a value: TEXT"
