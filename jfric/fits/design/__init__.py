"""Experiments that make parameters as certain as they can be."""
