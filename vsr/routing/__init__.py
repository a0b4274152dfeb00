"""The contract between the routing core and its adapters."""
