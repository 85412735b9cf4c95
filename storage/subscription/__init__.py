"""Subscriptions: cursors, isolation levels, dispatch, acknowledgement."""
