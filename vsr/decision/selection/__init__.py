"""Selection algorithms: which of a decision's models answers."""
