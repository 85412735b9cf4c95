"""`txnctl pipeline`: jobs on Apache Spark."""
