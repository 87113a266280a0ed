"""The oracle: exact happened-before from plain sets, slow and obvious.

Nothing here is clever, and nothing is shared with the protocols that it judges: it reads the
events of a finished execution and answers from set membership alone. `history` has the causal
past of messages and what a run did wrong, `cuts` has global states (Sahai et al. 2020, "Global
State of a Distributed System"), `graph` has graphs of declared parents.
"""
