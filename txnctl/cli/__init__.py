"""The frame of the command line: entry, declarations, options, value types, failure."""
