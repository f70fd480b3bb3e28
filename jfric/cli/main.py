"""The ``jfric`` command: every module of :mod:`jfric.cli` adds its own commands."""

from jfric.cli import (
    basins,
    bias,
    compare,
    export,
    fit,
    flutter,
    init,
    optimise,
    periodic,
    response,
    returns,
    run,
    show,
    statics,
    sweep,
    verify,
    view,
)
from jfric.cli.app import app
from jfric.cli.interrupt import end_within_seconds

#: Modules in the order of ``jfric --help``, in which they need not have been imported.
_MODULES = (
    *(init, run, sweep, periodic, response, returns, basins, fit, compare, optimise),
    *(statics, flutter),
    *(bias, export, verify, view, show),
)
_ORDER = [module.__name__ for module in _MODULES]
app.registered_commands.sort(key=lambda command: _ORDER.index(command.callback.__module__))


def main() -> None:
    """Entry point of the ``jfric`` command."""
    end_within_seconds()
    app()


if __name__ == "__main__":
    main()
