"""The verification manual: a page for each case, written from what was computed."""
