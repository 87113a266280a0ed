"""Every interleaving of a small group, each state visited once."""
