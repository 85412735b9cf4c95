"""Decorators: `txnctl/cli/decorators.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import StoreClosed
from tests.txnctl.cli.options_steps import FIELDS
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import (
    argument,
    changes_store,
    names_store,
    output,
    reads_store,
)


class TestOpening:
    """The store is open while the body runs, and closed whatever happens."""

    def test_a_reading_command_gets_a_store_that_cannot_be_written(
        self, run: Any, add: Any, store_path: str
    ) -> None:
        """And data.mdb is byte for byte what it was."""
        seen: list[Store] = []

        @command
        @reads_store
        @output(FIELDS, name_field="name")
        def look(context: Context) -> None:
            """Look."""
            seen.append(context.store)
            context.show_list([{"name": name} for name in context.store.topics()])

        add(look)
        before = Path(store_path, "data.mdb").read_bytes()
        outcome = run("probe", "--store", store_path, "-o", "name")
        assert (outcome.status, outcome.out) == (0, "orders\n")
        assert Path(store_path, "data.mdb").read_bytes() == before
        with pytest.raises(StoreClosed):
            seen[0].topics()

    def test_a_changing_command_gets_one_that_can(self, run: Any, add: Any, store_path: str) -> None:
        """What it changed is there afterwards."""

        @command
        @argument("name", help="A name.")
        @changes_store()
        @output(FIELDS, name_field="name")
        def make(context: Context, name: str) -> None:
            """Make."""
            context.store.create_topic(name)
            context.show({"name": name})

        add(make)
        assert run("probe", "added", "--store", store_path, "-o", "name").out == "added\n"
        with Store.open(store_path, read_only=True) as store:
            assert "added" in store.topics()

    def test_a_path_alone_opens_nothing(self, run: Any, add: Any, tmp_path: Path) -> None:
        """For commands that make the store."""

        @command
        @names_store(effect="writes")
        @output(FIELDS, name_field="name")
        def make(context: Context) -> None:
            """Make."""
            Store.create(context.store_path)
            with context.open_store(context.store_path, read_only=True) as store:
                context.show({"name": f"{len(store.topics())} topics"})

        add(make)
        assert run("probe", "--store", str(tmp_path / "new"), "-o", "name").out == "0 topics\n"
