"""All faults in their long form, one kind after the other: `python -m tests.faults [SCALE [SEED [KIND ...]]]`.

`make faults` runs all kinds, `make faults KINDS="kills hostile"` two of them. SCALE shortens every kind alike: 0.1 is a
tenth of the states, calls, pages, flips and inputs. docs/RELIABILITY.md has the figures of one run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from tests.faults import flipped_messages, hostile, kills, power_cut, refusals, stale_pages
from tests.processes import damage

KINDS: dict[str, Callable[[float, int], int]] = {
    "power-cuts": lambda scale, seed: power_cut.main(int(12_000 * scale), seed),
    "kills": kills.main,
    "refusals": refusals.main,
    "stale-pages": lambda scale, seed: stale_pages.main(int(2_000 * scale), seed),
    "flipped-messages": lambda scale, seed: flipped_messages.main(int(2_000 * scale), seed),
    "damage": lambda scale, seed: damage.main(int(10_000 * scale), seed),
    "hostile": lambda scale, seed: hostile.main(int(1_000_000 * scale), seed),
}
"""Each kind by name: a function of scale and seed, which prints figures and returns the number of failures."""


def main(scale: float = 1.0, seed: int = 1, kinds: Sequence[str] = ()) -> int:
    """Run some kinds, all unless named; print their figures, and return the number of failures."""
    failed, began = 0, time.monotonic()
    for kind in kinds or KINDS:
        failed += KINDS[kind](scale, seed)
        print(f"-- {time.monotonic() - began:.0f} s, {failed} failures so far", flush=True)
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(bool(main(*map(float, words[:1]), *map(int, words[1:2]), kinds=words[2:])))
