"""The ``jfric`` command: every module of :mod:`jfric.cli` adds its own commands."""

from importlib import import_module

from jfric.cli.app import app
from jfric.cli.interrupt import end_within_seconds

#: Modules of the commands, in the order of ``jfric --help``.
MODULES = (
    *("begin", "run", "sweep", "periodic", "response", "returns"),
    *("fit", "optimise", "statics"),
    *("bias", "export", "verify", "view"),
)
_ORDER = [import_module(f"jfric.cli.{name}").__name__ for name in MODULES]
# Some of them may have been imported before, in another order.
app.registered_commands.sort(key=lambda command: _ORDER.index(command.callback.__module__))


def main() -> None:
    """Entry point of the ``jfric`` command."""
    end_within_seconds()
    app()


if __name__ == "__main__":
    main()
