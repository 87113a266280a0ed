"""Users' tables: their columns to events, block by block."""
