"""Finite-element structures with contact, condensed to their contact nodes."""
