"""The Anthropic Messages API: requests, answers and errors, to and from chat completions."""
