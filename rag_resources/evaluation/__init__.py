"""Runs the golden dataset through the retrieval pipeline and says how good the answers are."""
