"""The verification manual: a page for each case, written from what was computed."""

from jfric.manual.collect import collect
from jfric.manual.write import write_manual

__all__ = [
    "collect",
    "write_manual",
]
