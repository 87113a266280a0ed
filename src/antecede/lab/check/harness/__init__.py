"""Harness that runs a group under test."""
