"""The session of a driver process that a test may kill."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from tests.processes.parent import say
from txnctl.spark.runtime.worker_python import worker_python


def started_session(master: str, checkpoint: str) -> SparkSession:
    """Start Spark with its files beside the checkpoint, and tell the parent process the pid of the JVM."""
    os.environ["PYSPARK_PYTHON"] = worker_python(os.path.dirname(checkpoint))
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{checkpoint}.local")
        .config("spark.sql.warehouse.dir", f"{checkpoint}.warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    say("jvm", jvm.java.lang.ProcessHandle.current().pid())
    return spark
