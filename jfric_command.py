"""The ``jfric`` command. Importing the package takes a second or more: Ctrl-C may come before."""

import sys


def main() -> None:
    """Entry point of the ``jfric`` command."""
    try:
        from jfric.cli.main import main as command
    except KeyboardInterrupt:
        print("jfric: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    command()
