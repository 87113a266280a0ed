"""Output of commands: a file, a folder of parts, bad rows; whole or not at all."""
