"""Comparison with exact and published values: cases, jobs, results."""

from jfric.verification.verify_cases import verify

__all__ = [
    "verify",
]
