"""The retrieval pipeline: a question in, passages with their context out."""
