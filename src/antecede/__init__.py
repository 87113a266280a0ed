"""antecede: messages in the order their causes demand."""
