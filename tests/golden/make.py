"""Makes the golden file anew: `python -m tests.golden.make`. Only for a deliberate change of the JSON.

The golden file says what scripts may rely on. It is made anew when a release adds a field or a command, with the
change in CHANGELOG; never to make a test pass after a change that was meant to keep the JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.golden.scenario import play
from tests.golden.teller import Teller

GOLDEN = Path(__file__).with_name("golden.ndjson")


def main(target: Path) -> None:
    """Play the scenario and write one line for each command line."""
    with tempfile.TemporaryDirectory() as directory:
        teller = Teller(Path(directory).resolve())
        try:
            play(teller)
        finally:
            teller.end()
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in teller.records]
    target.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else GOLDEN)
