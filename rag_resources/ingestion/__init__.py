"""From files to notes: the sources (Markdown, JSONL, CSV) and their ingestion."""
