"""Numerical tools without mechanics: linear algebra, polynomials, loops, compilation."""
