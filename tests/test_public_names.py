"""What ``import jfric`` offers: names, groups of names, and how long it takes."""

import subprocess
import sys
import types

import jfric


def test_advertised_names_exist():
    assert len(set(jfric.__all__)) == len(jfric.__all__)
    assert set(jfric.__all__) <= set(dir(jfric))
    assert all(getattr(jfric, name) is not None for name in jfric.__all__)


def test_groups_hold_the_same_objects():
    groups = [x for x in map(jfric.__dict__.get, jfric.__all__) if isinstance(x, types.ModuleType)]
    assert jfric.laws in groups
    for group in groups:
        for name in getattr(group, "__all__", ()):
            # A few base classes are of use to those who extend jfric only.
            assert name.startswith("Abstract") or getattr(jfric, name) is getattr(group, name)


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


def test_import_is_light():
    # The command answers --help within a second or two: slow modules are imported where they are
    # used.
    slow = "('diffrax', 'matplotlib', 'optax', 'pint', 'pydantic', 'xarray', 'zarr')"
    code = f"import sys, jfric.cli.main; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
