"""Input of commands: bytes of files and pipes, lines, CSV."""
