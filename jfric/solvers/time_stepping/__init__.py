"""Time stepping: fixed steps with one complementarity problem at velocity level in each."""
