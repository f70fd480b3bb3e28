"""The ``jfric`` command: every module of :mod:`jfric.commands` adds its own."""

# They are imported for that; the order is that of ``jfric --help``.
from jfric.commands import run, sweep, fit, statics, bias, verify, show  # noqa: F401, I001
from jfric.commands.app import app


def main() -> None:
    """Entry point of the ``jfric`` command."""
    app()


if __name__ == "__main__":
    main()
