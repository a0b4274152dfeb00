"""Pure upstream policies: no clock, no socket, no task."""
