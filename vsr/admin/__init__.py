"""The management API: configuration, status and drain of a Router that serves."""
