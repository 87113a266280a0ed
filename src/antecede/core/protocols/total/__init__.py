"""Total order: all members deliver all messages, their own too, in the same order.

With `sequencer` one member numbers all messages. With `timestamps` all members acknowledge, and
linear time decides.
"""
