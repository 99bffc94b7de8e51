"""The golden dataset as people maintain it: files, single questions, review."""
