"""Hold-back queues for orders that are relations and not counts of causes."""
