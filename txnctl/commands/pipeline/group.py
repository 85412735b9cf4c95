"""`txnctl pipeline`: jobs on Apache Spark. A module a job; neither the module nor Spark is loaded before the job is
invoked.
"""

from __future__ import annotations

from txnctl.cli.declaration import Group

pipeline = Group(
    "pipeline",
    """Jobs on Apache Spark: files in and out, settling, watching, auditing.

They need Java 17 or newer and the extra `spark` (pip install 'txnctl[spark]'), and nothing else of txnctl does;
`settle --once` and `audit` of up to 100,000 messages do without (--engine). They run in this process on all its
cores, unless --master names a cluster.
""",
    elsewhere={
        "ingest": (
            "txnctl.commands.pipeline.ingest:ingest",
            "Store the rows of files as messages of a topic, all or none.",
        ),
        "export": (
            "txnctl.commands.pipeline.export:export",
            "Write a topic or a table to Parquet, CSV or JSON.",
        ),
        "offload": (
            "txnctl.commands.pipeline.offload:offload",
            "Write the closed ledgers of a topic to Parquet files.",
        ),
        "monitor": (
            "txnctl.commands.pipeline.monitor:monitor",
            "Watch the money of a topic as soon as written, final or not.",
        ),
        "settle": (
            "txnctl.commands.pipeline.settle:settle",
            "Apply committed requests to a table of balances, exactly once.",
        ),
        "audit": (
            "txnctl.commands.pipeline.audit:audit",
            "Recompute all balances from the topics of requests, and compare.",
        ),
        "sql": (
            "txnctl.commands.pipeline.sql:sql",
            "Run a SQL statement over topics and tables.",
        ),
        "run": ("txnctl.commands.pipeline.run:run", "Run a Python program of yours with a Spark session."),
    },
)
