"""Audit: `txnctl/demo/audit.py`."""

from __future__ import annotations

from pathlib import Path

from storage import Store
from txnctl.demo import generator
from txnctl.demo.csv_file import read_bank_csv
from txnctl.demo.narrator import Narrator
from txnctl.demo.script import Script
from txnctl.demo.story import play
from txnctl.pipelines.hellers import format_hellers

# The real bank data has no licence to be shipped; where it lies beside the checkout it is played too.
REAL_DATA = Path(__file__).parents[5] / "shared" / "data" / "berka_sample.csv"


def test_a_wrong_balance_is_found(tmp_path: Path) -> None:
    """A balance that the requests do not lead to is told by account, with both figures."""
    lines = list(generator.generate(3, 1))
    last = {line.account_id: line for line in lines}
    account, line = sorted(last.items())[1]
    line.balance += 100
    told: list[str] = []
    narrator = Narrator(told.append)
    path = str(tmp_path / "store")
    Store.create(path)
    with Store.open(path) as store:
        facts = play(store, path, Script(lines), narrator)
        assert store.maintenance.verify_store() == []
    wrong = [check for check in narrator.checks if not check.ok]
    assert {check.actual for check in wrong} == {"2 of 3 accounts"}
    assert any(check.name.startswith("balance equals the data's own") for check in wrong)
    assert facts.audit.accounts_agreeing == 2
    had = format_hellers(line.balance - 100)
    assert any(
        f"account {account}: the table has {had}, the data says {format_hellers(line.balance)}" in text
        for text in told
    )


def test_every_bank_at_hand_agrees(tmp_path: Path) -> None:
    """Generated banks of several seeds, and the real data where it lies beside the checkout."""
    banks = [list(generator.generate(accounts, seed)) for accounts, seed in ((3, 77), (12, 5))]
    if REAL_DATA.exists():
        banks.append(list(read_bank_csv(str(REAL_DATA))))
    for number, lines in enumerate(banks):
        path = str(tmp_path / str(number))
        narrator = Narrator()
        Store.create(path)
        with Store.open(path) as store:
            facts = play(store, path, Script(lines), narrator)
        assert [check for check in narrator.checks if not check.ok] == []
        assert facts.audit.accounts_agreeing == len({line.account_id for line in lines})
        # Nothing is proved by a transfer behind which nothing arrives.
        assert facts.blocked.blocked > len(lines) // 5
