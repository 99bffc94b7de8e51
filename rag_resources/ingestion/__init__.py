"""From files to notes: the sources (Markdown, JSONL, CSV, SQuAD) and their ingestion."""
