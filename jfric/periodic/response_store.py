"""Store of a frequency response on disk while it is computed, so that nothing is done twice."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.periodic.path import OrbitPoint
from jfric.periodic.response_curve import read_curve, write_curve
from jfric.system.expression import Expression
from jfric.system.naming import parameters
from jfric.system.problem import Problem


class ResponseStore:
    """A folder with one file for each finished curve, and one for what there is of others.

    ``request``: what is asked for; a folder that holds something else is refused. ``what``: it is
    called, in messages and by the file that says what was asked for.
    """

    def __init__(
        self, folder: Path, request: dict[str, Any], title: str = "", what: str = "response"
    ):
        self.folder = folder
        found = json.loads(json.dumps(request))
        path = folder / f"{what}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                kept = json.loads(path.read_text("utf-8"))["request"]
                if kept != found:
                    differ = [k for k in found if kept.get(k) != found[k]]
                    raise ProblemError(
                        f"{folder}: holds another {what} ({', '.join(differ)} differ); choose "
                        "another folder"
                    )
                return
            if any(folder.iterdir()):
                raise ProblemError(f"{folder}: holds other files; choose another folder")
            text = json.dumps({"title": title, "request": found}, indent=1)
            temporary = path.with_suffix(".new")
            temporary.write_text(text, "utf-8")
            os.replace(temporary, path)
        except OSError as error:
            raise ProblemError(f"{folder}: cannot be used ({error.strerror})") from None
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(f"{path}: not the request of a {what} ({error})") from None

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"curve-{number + 1:04d}.{kind}.npz"

    def finished(
        self, number: int
    ) -> tuple[dict, list[OrbitPoint], tuple[int, str], dict[str, np.ndarray]] | None:
        """A curve that is there, and what was kept with it."""
        path = self._path(number, "whole")
        return read_curve(path) if path.exists() else None

    def begun(self, number: int) -> tuple[dict, list[OrbitPoint], dict[str, np.ndarray]] | None:
        """Part of a curve, and arrays from which the curve goes on; None where none is kept."""
        path = self._path(number, "part")
        if not path.exists():
            return None
        rows, special, _, more = read_curve(path)
        return rows, special, more

    def keep(
        self,
        number: int,
        rows,
        special,
        outcome: tuple[int, str],
        more: dict[str, np.ndarray] | None = None,
    ) -> None:
        """A finished curve, and what is kept with it."""
        write_curve(self._path(number, "whole"), rows, special, outcome, more)
        self._path(number, "part").unlink(missing_ok=True)

    def keep_part(self, number: int, rows, special, more: dict[str, np.ndarray]) -> None:
        """Keep a part of a curve, and the arrays ``more`` from which the curve goes on."""
        write_curve(self._path(number, "part"), rows, special, (0, ""), more)


def fingerprint(problem: Problem) -> str:
    """Tells problems apart by all their numbers and expressions, and names."""
    digest = hashlib.sha256()
    for path, value in sorted(parameters(problem).items()):
        text = value.text if isinstance(value, Expression) else np.asarray(value).tolist()
        digest.update(f"{path}={text!r};".encode())
    return digest.hexdigest()
