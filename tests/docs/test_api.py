"""docs/API.md names all that is public, with the parameters that it has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import storage
from storage.admin.acknowledgements import AcknowledgementAdmin
from storage.admin.admin import Admin
from storage.admin.producers import ProducerAdmin
from storage.admin.settings import SettingsAdmin
from storage.admin.subscriptions import SubscriptionAdmin
from storage.admin.tables import TableAdmin
from storage.admin.topics import TopicAdmin
from storage.admin.transactions import TransactionAdmin
from storage.client.run_transaction import TransactionRunner
from storage.maintenance.maintenance import Maintenance
from storage.reports.reports import Reports

PAGE = (Path(__file__).parents[2] / "docs" / "API.md").read_text()
CLASSES = (
    storage.Store,
    TransactionRunner,
    storage.Producer,
    storage.Consumer,
    storage.Reader,
    storage.Transaction,
    storage.EndGroup,
    storage.Message,
    storage.Table,
    storage.Row,
    Reports,
    Maintenance,
    Admin,
    TopicAdmin,
    ProducerAdmin,
    SubscriptionAdmin,
    AcknowledgementAdmin,
    TableAdmin,
    TransactionAdmin,
    SettingsAdmin,
)
INSIDE = {"connection", "engine", "work", "work_in", "table_reader", "commit_now"}
"""Parts of a store and of a transaction that the engine's own modules use."""


@pytest.mark.parametrize("name", storage.__all__)
def test_every_name_is_there(name: str) -> None:
    """What can be imported from `storage` is described."""
    assert re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_method_is_there(kind: type) -> None:
    """And every property."""
    public = {name for name in vars(kind) if not name.startswith("_")} - INSIDE
    public -= {name for name in getattr(kind, "__slots__", ()) if name in ("entry", "index", "origin")}
    assert not {name for name in public if not re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE)}


def signatures() -> list[tuple[str, str, str]]:
    """Class, method and parameters of every method whose parameters the page shows with a default."""
    found = []
    for kind in CLASSES:
        for name, method in vars(kind).items():
            plain = inspect.unwrap(getattr(method, "__func__", method))
            if name.startswith("_") or not inspect.isfunction(plain):
                continue
            shown = re.findall(rf"`(?:[\w.]+\.)?{name}\(([^`)]*=[^`)]*)\)`", PAGE.replace("\n", " "))
            found += [(kind.__name__, name, each) for each in shown]
    return found


@pytest.mark.parametrize(("kind", "name", "shown"), signatures())
def test_shown_parameters_exist(kind: str, name: str, shown: str) -> None:
    """With these names; some class has all of them (`acknowledge` is a consumer's and an operator's)."""
    shown_names = [each.split("=")[0].strip() for each in shown.split(",")]
    having = [each for each in CLASSES if hasattr(each, name)]
    assert any(set(shown_names) <= set(inspect.signature(getattr(each, name)).parameters) for each in having)
