"""Experiments: measured data as arrays and in files."""
