"""All faults in their long form, one kind after the other: `python -m tests.faults [SCALE [SEED]]`, or `make faults`.

SCALE shortens every kind alike: 0.1 is a tenth of the states, calls, pages, flips and inputs. docs/RELIABILITY.md has the
figures of one run.
"""

from __future__ import annotations

import sys
import time

from tests.faults import flipped_messages, hostile, kills, power_cut, refusals, stale_pages
from tests.processes import damage


def main(scale: float = 1.0, seed: int = 1) -> int:
    """Run all kinds; print their figures, and return the number of failures."""
    failed, began = 0, time.monotonic()
    runs = (
        lambda: power_cut.main(int(12_000 * scale), seed),
        lambda: kills.main(scale, seed),
        lambda: refusals.main(scale, seed),
        lambda: stale_pages.main(int(2_000 * scale), seed),
        lambda: flipped_messages.main(int(2_000 * scale), seed),
        lambda: damage.main(int(10_000 * scale), seed),
        lambda: hostile.main(int(1_000_000 * scale), seed),
    )
    for run in runs:
        failed += run()
        print(f"-- {time.monotonic() - began:.0f} s, {failed} failures so far", flush=True)
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(bool(main(*map(float, words[:1]), *map(int, words[1:2]))))
