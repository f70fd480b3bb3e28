"""Fits: parameters of a problem from measured trajectories, with their uncertainty."""
