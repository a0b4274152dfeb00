"""The request graph: nodes, budget, ledger and the executor."""
