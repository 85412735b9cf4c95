"""Story: `txnctl/demo/story.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.demo_steps import SMALL, failed
from txnctl.demo import generator
from txnctl.demo.script import Script, messages_of
from txnctl.demo.transaction import BankTransaction


def sparse(lines: list[BankTransaction]) -> list[BankTransaction]:
    """The lines with remittances near the middle and at the very end only, as where they cluster in a month."""
    last = max(place for place, line in enumerate(lines) if line.is_remittance)
    middle = range(len(lines) // 2, len(lines) // 2 + 300)
    return [line for place, line in enumerate(lines) if not line.is_remittance or place in (*middle, last)]


@pytest.mark.parametrize("make", [list, sparse])
def test_thousands_arrive_behind_the_open_transfer(
    make: Callable[[list[BankTransaction]], list[BankTransaction]],
) -> None:
    """The transfer stands in the midst of the data, however remittances cluster: else nothing would wait for it."""
    script = Script(make(list(generator.generate())))
    parts = (script.opening, [script.transfer], script.meanwhile, script.closing)
    assert [line for part in parts for line in part] == script.lines
    assert script.transfer.is_remittance
    assert min(len(script.opening), len(script.meanwhile)) > 5_000
    assert len(script.closing) > 1_000


def test_the_story_holds_to_the_last_heller(run: Callable[..., Any], temporary: Path) -> None:
    """As JSON: every check held, all accounts agree, D saw two messages more than E, the store is gone."""
    facts = run("demo", *SMALL, "-o", "json").json
    assert facts["ok"] is True
    assert failed(facts) == []
    assert len(facts["checks"]) > 30
    lines = list(generator.generate(6, 4))
    audit = facts["audit"]
    assert audit["accounts"] == audit["accountsAgreeing"] == facts["accounts"] == 6
    assert audit["requestsBooked"] == audit["committedMessages"] == messages_of(lines)
    assert audit["monitorSaw"] == audit["storedMessages"] == messages_of(lines) + 2
    assert facts["blocked"]["delivered"] == 0
    assert facts["blocked"]["blocked"] > 300
    assert facts["ordinary"]["booked"] > 300
    assert facts["aborted"]["booked"] > 50
    assert facts["committed"]["caughtUp"] == facts["blocked"]["blocked"] + 2
    assert facts["committed"]["killed"]["requests"] > 0
    assert facts["committed"]["killed"]["accounts"] > 0
    assert (facts["kept"], facts["source"], facts["seed"]) == (False, None, 4)
    assert list(temporary.iterdir()) == []
