"""Causal order for messages to some members: SES and RST (Sahai et al. 2020)."""
