"""How many examples each property and each rule machine tries, and from which seed.

The seed follows from the commit: each commit tries examples of its own, and the same examples whenever it is run again.
The end of a run prints the seed as MODEL_SEED, which repeats the run on any commit. MODEL_EXAMPLES sets the number of
examples and draws a fresh seed; MODEL_DIVISOR divides the usual number, as `make check` does.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).parents[1]
MODEL_EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "0"))
"""Examples of each property and rule machine; 0 for the number that each states."""
MODEL_DIVISOR = int(os.environ.get("MODEL_DIVISOR", "1"))


def examples(usual: int) -> int:
    """The number of examples to try where `usual` is the number of a whole run."""
    return MODEL_EXAMPLES or max(1, usual // MODEL_DIVISOR)


def _commit() -> str:
    """The commit in hexadecimal digits; 0 outside a repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return "0"
    return found or "0"


def choose_seed(config: pytest.Config) -> None:
    """Give Hypothesis the seed of this run, unless its own option on the command line does.

    Workers of pytest-xdist are started later and find the seed in their environment.
    """
    if "MODEL_SEED" not in os.environ:
        fresh = random.SystemRandom().getrandbits(32)
        os.environ["MODEL_SEED"] = str(fresh if MODEL_EXAMPLES else int(_commit()[:8], 16))
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = os.environ["MODEL_SEED"]


def seed_line(config: pytest.Config) -> str:
    """The seed of this run, as the environment variable that repeats the run."""
    divisor = f" MODEL_DIVISOR={MODEL_DIVISOR}" if MODEL_DIVISOR > 1 else ""
    many = f" MODEL_EXAMPLES={MODEL_EXAMPLES}" if MODEL_EXAMPLES else ""
    return f"models and properties: MODEL_SEED={config.option.hypothesis_seed}{many}{divisor}"


# No database and no phase of reuse: examples follow from the seed alone.
settings.register_profile(
    "txnctl",
    database=None,
    deadline=None,
    max_examples=examples(100),
    print_blob=True,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("txnctl")
