"""Mutation tests of the checker: protocols with one change."""
