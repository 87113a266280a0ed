"""Commands that simulate, compare and reproduce."""
