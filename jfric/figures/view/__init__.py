"""Interactive pages of stored results: ``jfric view``."""
