"""turngate: the one gate through which everything enters an LLM agent's context."""
