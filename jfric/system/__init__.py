"""Description of a system: masses, springs, friction, contacts and loads. Pure data, no solver
code."""
