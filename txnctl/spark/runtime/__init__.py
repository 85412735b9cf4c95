"""The Spark runtime: Java, sessions, scratch directories, errors."""
