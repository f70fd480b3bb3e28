"""Comparison with exact and published values: cases, jobs, results."""
