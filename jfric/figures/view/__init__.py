"""Pages of stored results that answer to the mouse: ``jfric view``."""
