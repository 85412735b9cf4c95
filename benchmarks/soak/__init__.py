"""Soak: days of a busy store in minutes, by a clock that runs faster, and whether anything grows."""
