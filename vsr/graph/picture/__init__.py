"""Graphs as their authors see them: trees, diagrams and tables, made of what was written."""
