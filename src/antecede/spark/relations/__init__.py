"""The vocabulary of causality over DataFrames: stamps, past, future, cuts."""
