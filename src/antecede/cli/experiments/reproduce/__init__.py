"""`antecede study`: a source's evaluation, and what it prints."""
