"""Independent references for systems with several contacts, in plain NumPy and SciPy.

None of them imports jfric (except inside ``problem()``, which builds the same system for it), and
none shares its algorithm: modes are found by dynamic programming, cut conditions or exhaustive
search, and the motion by DOP853 with a small step limit.
"""
