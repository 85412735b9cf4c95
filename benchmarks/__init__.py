"""The performance contract, measured: this store beside its peers, in turns within one run.

    python -m benchmarks                    every row, a few minutes
    python -m benchmarks P1 P3 --json F     two rows, the raw figures saved
    python -m benchmarks --quick            tiny sizes: does the harness run?

Reading order: `contract` (the targets), `bursts` (how time is measured), one module of `rows/`, then the contenders
that a row compares: `engine` and `command` (this store), `peers/` (its peers).

Only ratios are results. Neither the product nor its tests of correctness import this package.
"""
