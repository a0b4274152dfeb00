"""Several serving processes under one supervisor: what they say and agree on, how they are kept."""
