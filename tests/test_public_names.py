"""What ``import jfric`` offers: names, groups of names, and how long it takes."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import jfric


def test_advertised_names_exist():
    assert len(set(jfric.__all__)) == len(jfric.__all__)
    assert set(dir(jfric)) == set(jfric.__all__)
    assert all(getattr(jfric, name) is not None for name in jfric.__all__)


def test_groups_hold_the_same_objects():
    public = [getattr(jfric, name) for name in jfric.__all__]
    groups = [x for x in public if isinstance(x, types.ModuleType)]
    assert jfric.laws in groups
    for group in groups:
        for name in getattr(group, "__all__", ()):
            # A few base classes are of use to those who extend jfric only.
            found = inspect.unwrap(getattr(jfric, name, None))  # tests keep what functions answer
            assert name.startswith("Abstract") or found is getattr(group, name)


def test_public_functions_are_not_hidden_by_modules():
    for name in (
        "fit",
        "sweep",
        "equilibria",
        "trace",
        "limit_load",
        "simulate",
        "check",
        "verify",
    ):
        assert isinstance(getattr(jfric, name), types.FunctionType), name


SLOW = ("jax", "numpy", "diffrax", "matplotlib", "optax", "pint", "pydantic", "xarray", "zarr")


def loaded_by(code: str) -> list[str]:
    """Slow packages that a program has loaded when it ends."""
    code = f"import sys\n{code}\nprint([m for m in {SLOW} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout.splitlines()[-1])


def test_import_is_light():
    """The package and its command load nothing; a name loads what it needs."""
    assert loaded_by("import jfric, jfric.cli.main") == []
    assert loaded_by("import jfric; jfric.simulate, jfric.Problem") == ["jax", "numpy"]


@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "rnu", "run --nope"])
def test_help_and_typing_errors_load_nothing(words):
    code = f"""
from jfric.cli.main import app
try:
    app({words.split()})
except SystemExit:
    pass
"""
    # typer itself reads arguments with pydantic.
    assert set(loaded_by(code)) <= {"pydantic"}


def test_the_stubs_name_what_is_there():
    """Type checkers read the stubs, and so does the package."""
    for stub in sorted(Path(jfric.__file__).parent.rglob("__init__.pyi")):
        names = ".".join(stub.parent.relative_to(Path(jfric.__file__).parents[1]).parts)
        package = importlib.import_module(names)
        named = re.findall(r" as (\w+)$", stub.read_text("utf-8"), re.MULTILINE)
        assert named, names
        assert all(getattr(package, name) is not None for name in named), names


def test_all_names_are_listed_by_subject():
    """A name that the package offers stands in the short list or in that of a submodule."""
    stub = Path(jfric.__file__).with_suffix(".pyi").read_text("utf-8")
    named = set(re.findall(r" as (\w+)$", stub, re.MULTILINE))
    at_top = [getattr(jfric, name) for name in jfric.__all__]
    groups = [x for x in at_top if isinstance(x, types.ModuleType)]
    listed = {*jfric.__all__, *(name for m in groups for name in getattr(m, "__all__", ()))}
    assert named - listed <= {"compilation"}
    assert len(at_top) - len(groups) <= 70
