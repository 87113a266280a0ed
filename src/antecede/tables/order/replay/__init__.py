"""Logged bytes played back through the groups of their members: `antecede deliver`."""
