"""Comparison with exact and published values: cases, jobs, results."""

from .verify_cases import verify as verify
