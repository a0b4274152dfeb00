"""From a valid document to the snapshot of resources; pure."""
