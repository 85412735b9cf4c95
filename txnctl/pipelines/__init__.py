"""Jobs on Spark: each module has a pure `transform` of DataFrames and a thin function that runs the job.

    ingest    files -> a topic, all or nothing
    export    a topic or a table -> files
    monitor   a topic, READ_UNCOMMITTED, as it grows -> money by period, anomalies
    settle    a topic, READ_COMMITTED, as it grows -> balances in a table, exactly once
    audit     a topic -> balances, compared with the table and with the data
    offload   closed ledgers of a topic -> Parquet files

A transform takes and returns DataFrames; its input and output columns are `select`ed at entry and end. Transforms use
Spark's own functions only, and the one rule of a request in Python (`request.py`): `local_settle` and `local_audit` do
the same without Spark, with the same rule, the same notes and the same findings. The session comes from outside: the
command makes its own (`txnctl.spark.runtime.session`), a notebook passes another.
"""
