"""Design of experiments that make parameters as certain as possible."""
