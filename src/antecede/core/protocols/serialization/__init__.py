"""Stored bytes: snapshots and invitations, in a format that names nothing of the code."""
