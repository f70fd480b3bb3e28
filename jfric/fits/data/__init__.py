"""Experiments: what was measured, as arrays and in files."""
