"""`antecede simulate`: one scenario run, and what it says of it."""
