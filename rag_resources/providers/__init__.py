"""Models behind protocols: embedded ones and Ollama. A new provider is one new file."""
