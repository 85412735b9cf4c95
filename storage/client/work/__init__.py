"""The work of a transaction in its process until the commit: handle, outbox, write set, read set."""
