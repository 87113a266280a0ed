"""Total order: every member delivers all messages, its own too, in one and the same order.

Two ways to agree on it: `sequencer` (one member gives every message its place) and `timestamps`
(all members acknowledge, and linear time decides).
"""
