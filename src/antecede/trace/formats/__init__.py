"""Readers, one a format."""
