"""Generator: `txnctl/demo/generator.py`."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from tests.txnctl.bank_steps import HISTORY
from txnctl.demo.generator import generate


def test_another_seed_gives_other_lines() -> None:
    """The seed matters."""
    assert list(generate(3, 1)) != list(generate(3, 2))


def test_the_number_of_accounts_changes_no_history() -> None:
    """An account does the same in a small bank and in a large one."""

    def first_two(accounts: int) -> list[tuple[str, int, int]]:
        lines = [line for line in generate(accounts, 7) if line.account_id <= 14]
        return [(line.date, line.account_id, line.delta) for line in lines]

    assert first_two(2) == first_two(9)


def test_lines_come_as_they_are_made() -> None:
    """The first lines of a million accounts do not wait for the last; nor do those of few take long."""
    assert len(list(islice(generate(2_000), 100))) == 100


@pytest.mark.parametrize(("accounts", "seed"), [(1, 0), (2, 5), (40, 9), (160, 298)])
def test_every_account_is_whole(accounts: int, seed: int) -> None:
    """From 0, in order, the running sum of `delta` is `balance` on every line; dates never go back."""
    balances: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    before = ""
    ids = set()
    for line in generate(accounts, seed):
        balances[line.account_id] += line.delta
        seen[line.account_id] += 1
        assert line.balance == balances[line.account_id]
        assert line.acct_seq == seen[line.account_id]
        assert abs(line.delta) == line.amount > 0
        assert (line.delta > 0) == (line.type == "PRIJEM")
        assert line.date >= before
        before = line.date
        ids.add(line.trans_id)
    assert len(seen) == accounts
    assert len(ids) == sum(seen.values())


def test_the_bank_lives_for_years_and_some_accounts_are_overdrawn() -> None:
    """There are negative balances, few of them, and three and a half years."""
    assert 10 < sum(line.balance < 0 for line in HISTORY) < len(HISTORY) * 0.02
    assert HISTORY[0].date[:4] == "1995"
    assert HISTORY[-1].date[:4] == "1998"
    assert 80 < len(HISTORY) / len({line.account_id for line in HISTORY}) < 180


def test_a_bank_without_accounts_is_refused() -> None:
    """There is nothing to generate."""
    with pytest.raises(ValueError, match="at least one account"):
        list(generate(0))
