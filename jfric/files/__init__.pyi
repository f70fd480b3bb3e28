"""Files: TOML descriptions of a system, read into a Problem and written back; results."""

from .read_toml import load as load
from .robots import Robot as Robot
from .robots import read_robot as read_robot
from .write_toml import to_toml as to_toml
