"""From the authored document to a snapshot of resources."""
