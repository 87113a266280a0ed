"""Commands that check and show protocols."""
