"""Dispatch: the messages that a subscription delivers next."""
