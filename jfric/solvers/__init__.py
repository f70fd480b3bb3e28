"""How it moves: solvers that take a problem and return a solution."""
