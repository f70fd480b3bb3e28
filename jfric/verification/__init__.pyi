"""Comparison with exact and published values: cases, jobs, results."""

from .runner import verify as verify
