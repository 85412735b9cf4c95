"""Reading with Spark: plans, partitions, streams."""
