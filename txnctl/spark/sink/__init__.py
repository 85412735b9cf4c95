"""Writes of Spark: tasks stage files, the driver adopts the files in one transaction."""
