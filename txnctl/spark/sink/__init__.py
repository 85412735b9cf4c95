"""Writing with Spark: tasks stage files, the driver adopts them in one transaction."""
