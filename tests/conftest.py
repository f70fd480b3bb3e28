"""Settings of all tests: float64, and compiled programs kept from one run to the next."""

import gc
import os
from pathlib import Path

import jax
import pytest

from jfric.numerics.compilation import compile_quickly, use_compilation_cache

jax.config.update("jax_enable_x64", True)
os.environ.setdefault(
    "JFRIC_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla")
)
compile_quickly()
# Most tests compile for longer than they run. ``XLA_FLAGS=--xla_backend_optimization_level=3``
# tests the code that users run.
flags = os.environ.get("XLA_FLAGS", "")
if "backend_optimization_level" not in flags:
    flags = f"{flags} --xla_backend_optimization_level=0"
    if "xla_cpu_use_fusion_emitters" in flags:  # a jaxlib whose flags are known
        # Tests run side by side: no program is shared out to the processors.
        flags = f"{flags} --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = flags
use_compilation_cache()
# Tracing leaves next to no cycles, but a seventh of its time would go into looking for them.
gc.disable()

#: Files that take longest, first: no worker is left with one of them at the end.
LONGEST = (
    "pages", "protocol", "time_stepping", "several_contacts", "identify", "pivoting",
    "sweep_resume", "cross_checks", "sweep", "smoothed", "isolation", "derivatives",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    names = [f"test_{name}" for name in LONGEST]
    items.sort(key=lambda x: names.index(x.path.stem) if x.path.stem in names else len(names))


#: Bytes of a process beyond which its compiled programs are dropped at the end of a file: two
#: processes share the memory of the machine with others.
FULL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 5


@pytest.fixture(autouse=True, scope="module")
def _programs_do_not_pile_up():
    yield
    memory = Path("/proc/self/statm")
    if memory.exists() and int(memory.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > FULL:
        jax.clear_caches()
        gc.collect()
