"""What is printed: rows as tables, JSON, NDJSON or names; messages; numbers for people; progress."""
