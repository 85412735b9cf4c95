"""How the JVMs of tests run: they live for seconds, of which half went into compiling well what is never run again, and
a quarter into loading and checking Spark's classes.

`python -m tests.lean_java` writes an archive of those classes beside the packages that are installed; `make test` sees
to it. Tests run without it too, and so they do where it was made by another Java or for another PySpark: then Java
passes it over.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"


def options() -> str:
    """For the variable JDK_JAVA_OPTIONS."""
    return f"{_FLAGS} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else _FLAGS


def write_archive() -> None:
    """Run what jobs consist of, and keep the classes that it took."""
    from txnctl.spark.runtime.worker_python import worker_python

    os.environ["JDK_JAVA_OPTIONS"] = _FLAGS
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as place:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python(place)
        made = Path(place, "classes.jsa")
        _run(place, f"-XX:ArchiveClassesAtExit={made}")
        made.replace(ARCHIVE)


def _run(place: str, java_options: str) -> None:
    """A query in a batch and one as a stream, over each format, in a JVM that has ended when this returns."""
    from pyspark.sql import SparkSession, functions as f

    from storage import Store

    path = f"{place}/store"
    Store.create(path)
    with Store.open(path) as store:
        for topic in ("a", "b"):
            store.create_topic(topic)
        store.create_producer("a").send_batch([b'{"n": "1.50"}'] * 10, keys=["k"] * 10)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.local.dir", place)
        .config("spark.sql.warehouse.dir", f"{place}/warehouse")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    options = {"path": path, "topic": "a", "startingPosition": "earliest"}
    rows = spark.read.format("txnctl").options(**options).load()
    for kind in ("parquet", "json"):
        rows.select("key", "value").write.format(kind).save(f"{place}/{kind}")
        spark.read.format(kind).load(f"{place}/{kind}").groupBy("key").count().collect()
    rows.selectExpr("value").write.format("txnctl").mode("append").options(path=path, topic="b").save()
    amounts = f.get_json_object(f.col("value").cast("string"), "$.n").cast("decimal(17,2)")
    sums = spark.readStream.format("txnctl").options(**options).load()
    sums = sums.groupBy("key").agg(f.sum(amounts), f.count("*"))
    writing = sums.writeStream.outputMode("update").trigger(availableNow=True)
    writing.foreachBatch(lambda frame, _: frame.collect()).start().awaitTermination()
    jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    if shutil.which("java"):
        write_archive()
    else:
        print("Java is missing: no archive of classes is written.")
