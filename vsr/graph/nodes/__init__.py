"""Node types of the request graph."""
