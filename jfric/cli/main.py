"""The ``jfric`` command: every module of :mod:`jfric.cli` adds its own commands."""

# The imports add the commands, in the order of ``jfric --help``.
from jfric.cli import init, run, sweep, periodic, response, returns, basins, fit, compare, statics  # noqa: F401, I001
from jfric.cli import bias, export, verify, view, show  # noqa: F401
from jfric.cli.app import app
from jfric.cli.interrupt import end_within_seconds


def main() -> None:
    """Entry point of the ``jfric`` command."""
    end_within_seconds()
    app()


if __name__ == "__main__":
    main()
