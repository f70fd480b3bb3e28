"""Equilibria with friction, their paths over a parameter, and limit loads."""
