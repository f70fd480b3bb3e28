"""Reading of the text of files that a user names."""

from __future__ import annotations

import stat
from pathlib import Path


class ReadError(Exception):
    """Error with the reason why a file cannot be read, in a few words."""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8; raises :class:`ReadError`."""
    try:
        # Devices such as /dev/zero have no end; pipes have one.
        if stat.S_ISCHR(path.stat().st_mode):
            raise ReadError("cannot read the file (it is a device)")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ReadError("not a text file in UTF-8") from None
    except OSError as error:
        raise ReadError(f"cannot read the file ({error.strerror})") from None
    except ValueError:  # a zero byte in the name
        raise ReadError("cannot read the file (no valid name)") from None
