"""The performance contract, measured: ours beside its peers, side by side in one run.

    python -m benchmarks                    every row, a few minutes
    python -m benchmarks P1 P3 --json F     two rows, the raw figures saved
    python -m benchmarks --quick            tiny sizes: does the harness run?

Reading order: `contract` (what must be reached), `bursts` (how time is taken), one module of `rows/`, then the
contenders it pits against each other: `engine` and `command` (ours), `peers/` (theirs).

Only ratios are results. Nothing here is imported by the product or its tests of correctness.
"""
