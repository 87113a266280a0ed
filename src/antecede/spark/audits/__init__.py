"""`audit`, `meter`, `violations` and their reports over DataFrames."""
