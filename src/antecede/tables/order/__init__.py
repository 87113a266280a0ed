"""Causal order of tables: what to order by (`spec`), and the local engine of `antecede order`."""
