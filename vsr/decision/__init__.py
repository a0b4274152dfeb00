"""From a request to the models that may answer it."""
