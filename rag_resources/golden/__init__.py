"""The golden dataset as people keep it: files, single questions, review."""
