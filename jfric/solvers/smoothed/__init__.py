"""The smoothed solver: the same laws without corners, integrated by diffrax."""
