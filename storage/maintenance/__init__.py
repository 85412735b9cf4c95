"""Maintenance of a store: backup, restore, compaction, garbage collection."""
