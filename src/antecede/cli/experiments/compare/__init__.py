"""`antecede compare`: what is asked, what is measured, the table."""
