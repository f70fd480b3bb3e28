"""Sweeps: many trajectories, reduced to what is observed."""
