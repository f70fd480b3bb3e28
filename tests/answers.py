"""What functions of the package answer in tests, held against what was approved.

Every call that a test itself makes of a function of jfric, every command that it runs, and every
table, JSON file and page that is written meanwhile, is described by its numbers and texts.
``tests/approved/answers.json`` keeps the descriptions;
``pytest --approve`` writes those of the tests that ran, and leaves out what changes from one run to
the next when run again with ``--approve=again``. So a rebuild that changes an answer which no
assertion looks at is seen, and so is a mistake.
"""

from __future__ import annotations

import base64
import functools
import inspect
import re
import sys
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import approval
import jax
import numpy as np

APPROVED = Path(__file__).parent / "approved" / "answers.json"
#: Answers of one test that are kept, parts of files that it writes, numbers of one of these.
ANSWERS, PARTS, LEAVES = 6, 24, 40
#: Modules that hold no tests.
OWN = ("answers", "approval", "conftest")
#: Parts of files that name other files.
ELSEWHERE = ("command", "data", "config_file")
#: Characters of a text that is kept; pages hold a packed library.
LONGEST = 50_000
#: What numbers may differ by, relative to the largest of their array.
CLOSE = 2e-3
TINY = 1e-9
#: What depends on the machine, or on how long something took.
_OF_THE_MACHINE = re.compile(
    r"seconds|elapsed|wall|rate|memory|path|folder|directory|version|commit|date|steps|evaluations"
    r"|iterations|residual|error|cost|nfev"
)
_OF_THE_PLACE = re.compile(r"/\S+|\d[\d.]* ?(?:s|ms|min)\b")
_NUMBER = re.compile(r"[-+\u2212]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


class Kept:
    """Answers of the test that runs; None between tests."""

    found: list[tuple[str, Any]] | None = None

    def add(self, name: str, answer: Any) -> None:
        """Keep an answer of a function called ``name``."""
        self._add(name, answer, False, ANSWERS)

    def add_written(self, content: Any) -> None:
        """Keep what a file holds, each of its parts by itself."""
        if isinstance(content, dict):
            for name, part in content.items():
                if not _OF_THE_MACHINE.search(name) and name not in ELSEWHERE:
                    self._add(f"written {name}", _compact(part), True, PARTS)
        else:
            self._add("written", _compact(content), True, PARTS)

    def _add(self, name: str, answer: Any, written: bool, most: int) -> None:
        found = self.found
        if found is not None and sum(x.startswith("written") == written for x, _ in found) < most:
            found.append((name, answer))


_kept = Kept()


def begin() -> None:
    """Answers from now on belong to a new test."""
    _kept.found = []


def end() -> list[list]:
    """The answers since ``begin``, described; none are kept from now on."""
    found, _kept.found = _kept.found or [], None
    return [[name, *described(value)] for name, value in found]


def watch() -> None:
    """Keep what the functions answer that test modules, or all through ``jfric``, call."""
    from typer.testing import CliRunner

    import jfric

    load = jfric.__getattr__

    def loaded(name: str):
        value = watched(load(name))
        vars(jfric)[name] = value
        return value

    jfric.__getattr__ = loaded
    for name, value in list(vars(jfric).items()):
        vars(jfric)[name] = watched(value)
    invoke = CliRunner.invoke

    def invoked(*args, **options):
        result = invoke(*args, **options)
        _kept.add("command", f"{result.exit_code}\n{result.output}")
        return result

    CliRunner.invoke = invoked
    _watch_files()


def _watch_files() -> None:
    """Keep the content of the files that are written."""
    from jfric.figures.view import page
    from jfric.files import output

    def kept(write, content):
        @functools.wraps(write)
        def writing(*args):
            _kept.add_written(content(*args))
            return write(*args)

        return writing

    output.write_trajectory = kept(
        output.write_trajectory, lambda path, table, units: {"table": {**table, "units": units}}
    )
    output.write_json = kept(
        output.write_json, lambda path, content: content if path.suffix == ".json" else {}
    )

    def of_page(name, content):
        if name == "arrays":  # plots have them themselves
            return {}
        if not isinstance(content, dict) or "layout" not in content:
            return {name: content}
        return {f"{name} {part}": value for part, value in content.items()}

    page.data = kept(page.data, of_page)


def watch_modules(tests: Path) -> None:
    """Keep what those functions answer that modules of ``tests`` imported by name."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None or Path(file).parent != tests or module.__name__ in OWN:
            continue
        for name, value in list(vars(module).items()):
            if (getattr(value, "__module__", None) or "").startswith("jfric."):
                vars(module)[name] = watched(value)
            elif isinstance(value, functools._lru_cache_wrapper):
                vars(module)[name] = _apart(value)


def _apart(helper: Any) -> Any:
    """A helper that keeps its result: what it computes belongs to no test, whichever asks first."""

    @functools.wraps(helper)
    def computed(*args, **options):
        found, _kept.found = _kept.found, None
        try:
            return helper(*args, **options)
        finally:
            _kept.found = found

    return computed


def watched(value: Any) -> Any:
    """``value`` itself, or a function that does the same and remembers what it answered."""
    if not inspect.isfunction(value) or hasattr(value, "__wrapped__"):
        return value
    if not value.__module__.startswith("jfric.") or inspect.isgeneratorfunction(value):
        return value

    kept = _kept

    def answered(*args, **options):
        result = value(*args, **options)
        kept.add(value.__name__, result)
        return result

    # A function of the same module: warnings name the line outside of the package that calls it.
    code, closure = answered.__code__, answered.__closure__
    inside = types.FunctionType(code, value.__globals__, value.__name__, None, closure)
    return functools.wraps(value)(inside)


def judged(test: str, found: list[list], approve: str | None) -> str:
    """What differs from the approved answers of a test; with ``approve`` they are kept."""
    known = approval.read(APPROVED).get(test)
    if approve:
        kept = together(found, known) if approve == "again" and known is not None else found
        approval.write({test: kept}, APPROVED)
        return ""
    return difference(found, known) if known else ""


# What is kept of an answer.


def described(value: Any) -> list:
    """Numbers of arrays, in order, behind a sum over all that is counted, chosen or written."""
    whole, numbers, texts = 0, [], []
    for name, leaf in _leaves("", value):
        if isinstance(leaf, jax.core.Tracer):
            return []
        if _OF_THE_MACHINE.search(name) or len(numbers) >= LEAVES:
            continue
        if isinstance(leaf, str):
            texts += [leaf] if len(leaf) < LONGEST else []
        elif isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic, jax.Array)):
            if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(
                leaf.dtype, jax.dtypes.extended
            ):
                continue
            x = np.asarray(leaf)
            if x.dtype.kind in "biu":
                whole = zlib.crc32(repr((x.shape, x.astype(np.int64).tolist())).encode(), whole)
            elif x.dtype.kind in "fc" and x.size:
                numbers.append(_number(x))
    if type(value).__str__ is not object.__str__ and _of_jfric(type(value)):
        texts.append(str(value))
    for text in texts:
        words = _OF_THE_PLACE.sub("#", text)
        whole = zlib.crc32(_NUMBER.sub("#", words).encode(), whole)
        numbers += [_value(x) for x in _NUMBER.findall(words)][:LEAVES]
    return [whole, *numbers]


def _leaves(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Numbers, arrays and texts of an answer, of its parts and of those of its own classes."""
    try:
        leaves = jax.tree_util.tree_leaves_with_path(value)
    except (TypeError, ValueError):  # a mapping whose keys have no order
        return
    for path, leaf in leaves:
        where = name + jax.tree_util.keystr(path)
        if _of_jfric(type(leaf)) and hasattr(leaf, "__dict__") and depth < 3:
            for field, part in vars(leaf).items():
                yield from _leaves(f"{where}.{field}", part, depth + 1)
        else:
            yield where, leaf


def _compact(value: Any) -> Any:
    """``value`` with the names of its parts as texts, its lists of numbers as arrays."""
    if isinstance(value, dict):
        if set(value) == {"shape", "bytes"}:
            return np.frombuffer(base64.b64decode(value["bytes"]), "<f8").reshape(value["shape"])
        if {"dtype", "bdata"} <= set(value):
            return np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        return [" ".join(map(str, value)), {str(k): _compact(x) for k, x in value.items()}]
    if isinstance(value, (list, tuple)):
        if value and all(type(x) in (int, float) for x in value):
            return np.array(value, float)
        return [_compact(x) for x in value]
    return "none" if value is None else value


def _of_jfric(cls: type) -> bool:
    return cls.__module__.startswith("jfric.")


def _value(text: str) -> float:
    return _rounded(float(text.replace(",", "").replace("\u2212", "-") or 0.0))


def _number(x: np.ndarray) -> float:
    """The number itself; of several their size, and half of what they have in one direction."""
    own = np.concatenate([x.real.reshape(-1), x.imag.reshape(-1)]) if x.dtype.kind == "c" else x
    own = own.reshape(-1).astype(float)
    own = np.where(np.isfinite(own), own, 0.0)
    if own.size == 1:
        return _rounded(own[0])
    along = np.cos(1.0 + np.arange(own.size))
    return _rounded(np.sqrt(own @ own) + 0.5 * (along @ own) / np.sqrt(along @ along))


def _rounded(x: float) -> float:
    return float(f"{x:.5g}")


def difference(found: list, approved: list) -> str:
    """The first difference, empty where there is none."""
    known = _numbered(found)
    for (name, i), then in _numbered(approved).items():
        now = known.get((name, i))
        if now is not None and then and not alike(now, then):
            return f"answer {i} of {name}: {now} for {then}"
    return ""


def _numbered(answers: list) -> dict[tuple[str, int], list]:
    """Answers by the function's name and number."""
    found: dict[tuple[str, int], list] = {}
    for name, *answer in answers:
        found[name, sum(known == name for known, _ in found)] = answer
    return found


def alike(found: list, approved: list) -> bool:
    """Whether two descriptions agree but for rounding."""
    if found[:1] != approved[:1] or len(found) != len(approved):
        return False
    pairs = zip(found[1:], approved[1:], strict=True)
    return all(x == y or abs(x - y) <= CLOSE * max(abs(x), abs(y)) + TINY for x, y in pairs)


def together(found: list, approved: list) -> list:
    """What two runs agree on: an answer that differs is left out from then on."""
    now = _numbered(found)
    return [
        [name, *(then if alike(now.get((name, i), []), then) else [])]
        for (name, i), then in _numbered(approved).items()
    ]
