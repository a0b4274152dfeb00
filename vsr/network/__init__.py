"""The narrow port all sockets come through, and what stands behind it."""
