"""The unnecessary-order meter: pairs that a rule orders, needs not, or misses."""
