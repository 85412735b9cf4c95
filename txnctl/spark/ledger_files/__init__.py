"""Ledgers as Parquet files on any file system: written on the store's host, read anywhere (docs/SCALE.md)."""
