"""Programs and values to read and to try; nothing here is shipped."""
