"""Ordering and audits as DataFrame -> DataFrame functions."""
