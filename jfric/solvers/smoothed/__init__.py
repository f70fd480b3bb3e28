"""The smoothed solver: friction and contact laws without kinks, integrated by diffrax."""
