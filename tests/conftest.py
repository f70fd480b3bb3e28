"""Settings of all tests: float64, and compiled programs kept from one run to the next."""

import gc
import os
import zlib
from pathlib import Path

import answers
import approval
import jax
import pytest

from jfric.numerics import kept_programs
from jfric.numerics.compilation import cache_directory, compile_quickly, use_compilation_cache
from jfric.system.bristle import BRISTLES
from jfric.system.elements import SECTIONS
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.laws import LAWS

jax.config.update("jax_enable_x64", True)
if "JFRIC_CACHE_DIR" not in os.environ:
    # All clones share the programs: the key of a program is its text and the version of XLA.
    os.environ["JFRIC_CACHE_DIR"] = str(
        (cache_directory() or Path(".pytest_cache/xla")).with_name("tests")
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
answers.watch()
# Tests replace parts of the package and count what is traced: nothing is taken from others.
kept_programs.compilation_folder = lambda: None
# Tracing leaves next to no cycles, but a seventh of its time would go into looking for them.
gc.disable()

#: Files that take longest, first: no worker is left with one of them at the end.
LONGEST = (
    "pages", "protocol", "time_stepping", "several_contacts", "identify", "pivoting",
    "sweep_resume", "cross_checks", "sweep", "smoothed", "isolation", "derivatives",
)  # fmt: skip


#: Bytes of compiled programs that are kept; the oldest are dropped when tests begin.
KEPT = 4e9


def pytest_sessionstart(session):
    folder = Path(os.environ["JFRIC_CACHE_DIR"])
    if hasattr(session.config, "workerinput") or not folder.is_dir():
        return
    programs = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
    kept = 0
    for program in programs:
        kept += program.stat().st_size
        if kept > KEPT:
            program.unlink()


def pytest_addoption(parser):
    parser.addoption(
        "--approve",
        nargs="?",
        const="all",
        choices=("all", "again"),
        help="keep what figures of tests show and functions answer; again: drop what differs",
    )
    parser.addoption("--part", help="K/N: the K-th of N parts of the tests, chosen by their names")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--part"):
        part, parts = map(int, config.getoption("--part").split("/"))
        chosen = {x for x in items if zlib.crc32(x.nodeid.encode()) % parts == part % parts}
        config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
        items[:] = [x for x in items if x in chosen]
    answers.watch_modules(Path(__file__).parent)
    names = [f"test_{name}" for name in LONGEST]
    items.sort(key=lambda x: names.index(x.path.stem) if x.path.stem in names else len(names))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Figures that a test makes and answers that it gets are what was approved, see
    ``approval.py`` and ``answers.py``."""
    from matplotlib.figure import Figure

    made, begin = [], Figure.__init__

    def remembered(self, *args, **options):
        begin(self, *args, **options)
        made.append(self)

    Figure.__init__ = remembered
    answers.begin()
    try:
        result = yield
    finally:
        Figure.__init__ = begin
        answered = answers.end()
    if "tests" not in item.path.parts:
        return result
    said = ""
    # Hypothesis draws other examples each time.
    if answered and not getattr(item.obj, "is_hypothesis_test", False):
        said = answers.judged(item.nodeid, answered, item.config.getoption("--approve"))
    if made:
        found = [approval.described(figure) for figure in made]
        if item.config.getoption("--approve") == "all":
            approval.write({item.nodeid: found})
        else:
            said = said or approval.difference(found, approval.read().get(item.nodeid, found))
    if said:
        pytest.fail(f"{said}\nlook at it, and approve it: pytest --approve", pytrace=False)
    return result


@pytest.fixture(autouse=True)
def _names_of_a_test_end_with_it():
    """Elements and laws that a test registers."""
    known = (SECTIONS, BRISTLES, HYSTERESIS, LAWS)
    before = [dict(x) for x in known]
    yield
    for now, then in zip(known, before, strict=True):
        if now != then:
            now.clear()
            now.update(then)


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
