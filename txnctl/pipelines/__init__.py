"""Jobs on Spark: each module is one, a pure `transform` of DataFrames and a thin `run`.

    ingest    files -> a topic, all or nothing
    export    a topic or a table -> files
    monitor   a topic, READ_UNCOMMITTED, as it grows -> money by period, anomalies
    settle    a topic, READ_COMMITTED, as it grows -> balances in a table, exactly once
    audit     a topic -> balances, held against the table and against the data

A transform takes DataFrames and gives DataFrames; the columns it needs and those it gives are `select`ed at its entry
and at its end. It uses Spark's own functions only, no Python at the executors. `run` takes a session from whoever
calls: the command makes its own (`txnctl.spark.runtime.session`), a notebook brings another.
"""
