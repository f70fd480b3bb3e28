"""Motion from sample to sample under measured inputs, in open or closed loop."""
