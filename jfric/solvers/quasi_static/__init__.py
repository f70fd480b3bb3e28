"""The quasi-static solver: load histories without inertia."""
