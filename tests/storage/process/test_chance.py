"""Random numbers for waits."""

from __future__ import annotations

from storage.process.chance import share


def test_shares_lie_between_0_and_1_and_differ() -> None:
    """The chance of two equal ones of a thousand is one in half a billion."""
    shares = [share() for _ in range(1000)]
    assert min(shares) >= 0 and max(shares) < 1
    assert len(set(shares)) == len(shares)
