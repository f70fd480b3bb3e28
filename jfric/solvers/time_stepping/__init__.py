"""Time stepping: fixed steps, one complementarity problem at velocity level in each."""
