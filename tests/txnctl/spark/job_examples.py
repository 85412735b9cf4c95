"""Examples in help of jobs that can run on a session they did not start: all but `run`, whose program asks its own."""

from __future__ import annotations

from typing import Final

from txnctl.commands.pipeline.group import pipeline
from txnctl.generate.tree import examples

_WITHOUT_SPARK: Final = "offload"
_ON_ITS_OWN: Final = "run"
TITLES: Final = {
    f"txnctl pipeline {name}" for name in pipeline.names() if name not in (_WITHOUT_SPARK, _ON_ITS_OWN)
}
EXAMPLES: Final = [(title, example) for title, example in examples() if title in TITLES]
