"""vllm-sr: an LLM gateway that routes by meaning."""
