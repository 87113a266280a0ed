"""The bench for teachers: protocols side by side, moved by hand (`antecede play`)."""
