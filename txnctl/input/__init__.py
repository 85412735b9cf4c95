"""Input of commands: bytes of files and pipes, lines, CSV, lines of JSON read back into rows and messages."""
