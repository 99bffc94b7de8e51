"""The evaluation report: its data, its page and its plot."""
