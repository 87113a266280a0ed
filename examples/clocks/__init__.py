"""Clocks of the sources as immutable values: to read, to try, to hold packed forms against."""
