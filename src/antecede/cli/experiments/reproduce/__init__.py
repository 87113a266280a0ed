"""`antecede reproduce`: evaluation of a paper, and its output."""
