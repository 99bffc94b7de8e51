"""Models behind protocols: embedded ones, Ollama; a new provider is one new file."""
