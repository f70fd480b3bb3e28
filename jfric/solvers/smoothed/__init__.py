"""The smoothed solver: the same laws without kinks, integrated by diffrax."""
