"""The fields of each kind of row, shared by commands and the report."""
