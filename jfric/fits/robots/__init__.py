"""Friction and inertia of all joints of a robot from a log of its positions and torques."""
