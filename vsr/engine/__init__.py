"""The routing core, phase by phase."""
