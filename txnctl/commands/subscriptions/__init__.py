"""`txnctl subscriptions`: cursors, isolation levels and backlogs."""
