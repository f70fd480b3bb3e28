"""Mechanical systems: masses, springs, friction, contacts and loads. Pure data, no solver code."""
