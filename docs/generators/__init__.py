"""Pages of the site that are written from the code, and checks of the others."""
