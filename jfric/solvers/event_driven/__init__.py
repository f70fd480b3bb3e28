"""The event-driven solver: exact motion between events, events located, modes decided."""
