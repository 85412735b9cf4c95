"""The process: its clock, its identity, its kernel locks, its background thread."""
