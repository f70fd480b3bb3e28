"""Places of the shipped configuration files."""

from __future__ import annotations

from pathlib import Path

from jfric.errors import ProblemError, nearest

_PACKAGE = Path(__file__).resolve().parent.parent


def config_directory() -> Path:
    """Folder of the shipped files: inside an installed package, or next to it in a checkout."""
    for folder in (_PACKAGE / "configs", _PACKAGE.parent / "configs"):
        if folder.is_dir():
            return folder
    raise ProblemError("the shipped configuration files are missing; reinstall jfric")


def systems() -> dict[str, Path]:
    """Paths of the shipped files by their names without ending."""
    return {path.stem: path for path in sorted(config_directory().glob("*.toml"))}


def shipped(name: str) -> Path:
    """Path of a shipped file by its name without ending."""
    known = systems()
    if name not in known:
        raise ProblemError(f"no shipped configuration {name!r}{nearest(name, known)}")
    return known[name]


def files_in(paths: list[Path]) -> list[Path]:
    """All configuration files among ``paths``, including those in folders."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.toml"))
            if not inside:
                raise ProblemError(f"{path}: found no .toml file in this folder")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise ProblemError(f"{path}: no such file or folder")
    return list(dict.fromkeys(found))
