"""Optimisers for many starts at once, and where they start."""
