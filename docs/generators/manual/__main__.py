"""Command that writes the verification manual.

``python -m generators.manual [--case PATTERN]`` runs the shipped cases for the site;
``python -m generators.manual FILE ... --html FOLDER`` runs the checks of files and writes pages
that need nothing else. Exit status 1 where a check fails, 2 for bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

import jax

from generators.manual.collect import collect
from generators.manual.site import ALL, write_site
from generators.manual.write import write_manual
from jfric.errors import ProblemError
from jfric.numerics.compilation import compile_quickly, use_compilation_cache
from jfric.sweeps.progress import Progress


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and write their pages, also where a check fails, so that one can look."""
    given = _parser().parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    compile_quickly()
    use_compilation_cache()
    try:
        return _written(given)
    except ProblemError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m generators.manual", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders of your own")
    parser.add_argument("--case", default=ALL, metavar="PATTERN", help="cases of this name only")
    parser.add_argument("--html", type=Path, metavar="FOLDER", help="pages that need nothing else")
    return parser


def _written(given: argparse.Namespace) -> int:
    """Run and write what was asked for; returns the exit status."""
    if given.html is not None and given.html.exists() and not given.html.is_dir():
        raise ProblemError(f"--html: {str(given.html)!r} is a file, the pages need a folder")
    if given.paths and given.html is None:
        raise ProblemError("--html: missing, the pages of your own files need a folder")
    case = None if given.case == ALL else given.case
    with Progress(0, stage="verification manual") as bar:
        entries, results = collect(
            given.paths or None, case=case, progress=bar.show, processes=None
        )
    if given.html is None:
        write_site(entries)
    else:
        made = date.today().isoformat()
        below = f"jfric {version('jfric')}, jax {version('jax')}; jfric verify, {made}"
        print(write_manual(given.html, entries, below)[0])
    failed = [r for r in results if not r.passed]
    for r in failed:
        print(
            f"{r.case}, {r.solver}: {r.quantity} is {r.value!r} instead of {r.expected!r}, "
            f"error {r.error:.3g} exceeds {r.tolerance:.3g}",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
