"""Pictures of topics: `txnctl/report/figures.py`."""

from __future__ import annotations

import pytest

from storage import Store
from tests.txnctl.stuck_store import StuckStore
from txnctl.report import figures
from txnctl.report.figures import Pictures


def test_the_legend_has_what_is_drawn(stuck_store: StuckStore) -> None:
    """A picture of a topic without transactions brings no sign of one."""
    with Store.open(stuck_store.path, read_only=True) as store:
        models = {model.name: model for model in store.reports.store_report().timelines}
    drawn = Pictures()
    assert drawn.legend() is None
    drawn.figure(models["payments"])
    legend = str(drawn.legend())
    assert "readable" in legend
    assert "transaction" not in legend
    drawn.figure(models["orders"])
    legend = str(drawn.legend())
    assert "blocked" in legend
    assert "messages of a transaction" in legend


def test_a_picture_without_room_is_a_command(
    stuck_store: StuckStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large picture is drawn with fewer rows; beyond the bound of all pictures the command stands in its place."""
    with Store.open(stuck_store.path, read_only=True) as store:
        (model,) = [each for each in store.reports.store_report().timelines if each.name == "orders"]
    whole = Pictures().figure(model)
    monkeypatch.setattr(figures, "FIGURE_BYTES_MAX", len(whole) * 9 // 10)
    fewer = Pictures().figure(model)
    assert len(fewer) < len(whole)
    assert "2 more open transactions" in fewer
    monkeypatch.setattr(figures, "FIGURES_BYTES_MAX", 100)
    assert "Not drawn here: <code>txnctl transactions timeline orders</code>" in Pictures().figure(model)
