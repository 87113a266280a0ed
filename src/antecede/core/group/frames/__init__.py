"""Format and codec of the frames that members exchange."""
