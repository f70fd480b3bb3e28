"""Files and units: TOML descriptions of a system, read into a Problem and written back."""
