"""Answers made from retrieved passages."""
