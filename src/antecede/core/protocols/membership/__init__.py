"""Membership changes: joining members, departures and lost messages."""
