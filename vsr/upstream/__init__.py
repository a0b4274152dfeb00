"""Clusters at run time: connections, attempts, local replies."""
