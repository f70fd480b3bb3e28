"""Files: TOML descriptions of a system, read into a Problem and written back; results."""

from jfric.files.read_toml import load
from jfric.files.write_toml import to_toml

__all__ = [
    "load",
    "to_toml",
]
