"""Spark itself: Java, sessions, scratch directories, errors."""
