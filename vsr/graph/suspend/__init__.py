"""Runs that wait for the client's tools: what is kept of them, where, and how they go on."""
