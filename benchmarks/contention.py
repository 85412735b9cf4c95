"""Between which two of many accounts the next transfer goes: how often several processes want the same."""

from __future__ import annotations

import random

OWN = "own keys"
MANY = "1,000 shared keys"
FEW = "10 shared keys"
HOT = "one hot key"
LEVELS = (OWN, MANY, FEW, HOT)

_STRIDE = 8
"""The most processes that have keys of their own."""
_SHARED = {MANY: 1000, FEW: 10}


def pair(level: str, chance: random.Random, number: int, count: int) -> tuple[int, int]:
    """Two different accounts out of `count` for process `number`; with HOT, the first is the same for all."""
    if level == HOT:
        return 0, chance.randrange(1, count)
    among = range(number, count, _STRIDE) if level == OWN else range(min(count, _SHARED[level]))
    first, second = chance.sample(among, 2)
    return first, second
