"""Dry runs of request graphs: the production engine on a virtual clock and a scripted network."""
