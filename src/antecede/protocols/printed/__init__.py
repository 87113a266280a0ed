"""Misprints of the sources, word for word: to measure what they do."""
