"""Embedded model servers with scripted replies and faults."""
