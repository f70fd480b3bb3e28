"""Compilation of programs by platform: code generation, rows of batches, and the cache of compiled
programs.

Settings of the whole process are for entry points: a library import never touches them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax

from jfric.numerics.tracing import remark, traced_for

#: XLA's older code generator for CPU kernels compiles the many small kernels of a solver in half
#: the time, and these run as fast. One pass over the program moves reshapes, and everything else
#: with them, back and forth up to a limit on rounds; without this pass compilation takes a fifth
#: less. Another one moves loop invariants out of loops bit by bit; the solvers do so themselves,
#: and without the pass compilation takes a tenth less (measured with jaxlib 0.10.1).
QUICK = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_disable_hlo_passes": "reshape-mover,while-loop-invariant-code-motion",
}

#: Machine code of one trajectory gains nothing from vectors: without the search for vectors
#: mechanisms compile in four fifths of the time and run as fast.
SINGLE = {"xla_backend_optimization_level": 1}
#: Unoptimised machine code compiles in half the time and runs half to a fifth as fast.
BRIEF = {"xla_backend_optimization_level": 0}

#: Vectors of eight numbers where the processor has them; by default XLA uses four. Batches of the
#: closed form are 1.8 times as fast.
WIDE = {"xla_cpu_prefer_vector_width": 512}

#: Loops that touch fewer bytes in a round become one piece of machine code (by default 1,024).
#: Loops of one trajectory and of a small batch then run without a call for each of their kernels,
#: and without changing processors: several times as fast. Loops of large batches touch more bytes.
#: XLA reads this option from the environment only.
WHOLE_LOOPS = "xla_cpu_small_while_loop_byte_threshold=2000000"

#: Kernels of scalars read and write many vectors at once. LLVM does not vectorise such a loop if
#: more than 128 comparisons are needed to show that the vectors do not overlap. With this option
#: the loop is four to eight times as fast.
VECTORS = "-vectorize-memory-check-threshold=1000000"

#: Arrays that the compiler has distinguished need no comparison, but it forgets this beyond 250.
TOLD_APART = "-alias-set-saturation-threshold=10000"


class Platform(NamedTuple):
    """Settings for the platform on which programs run.

    The trajectories of a batch that step together are a row. ``row``: number of trajectories in a
    row; ``small_row``: this number where a pass holds few numbers of each trajectory; ``rows``:
    largest number of rows of one call, where empty rows cost nothing. ``tail``: number of rows, and
    of trajectories in each, for trajectories that a row did not wait for. ``options``: those of the
    compiler, for programs of many small kernels.
    """

    row: int
    small_row: int
    rows: int
    tail: tuple[int, int]
    options: Mapping[str, bool | int | str]


#: A row fits a processor's cache.
CPU = Platform(row=1024, small_row=4096, rows=64, tail=(2, 64), options=QUICK | WIDE)
#: Where a row's loop is one piece of machine code, starting its parts costs nothing, and a row may
#: fit the fastest cache.
CPU_WHOLE = CPU._replace(row=64, small_row=64, rows=4096)
#: A row fills an accelerator: it runs some hundred thousand threads at once, and starting a kernel
#: takes as long as computing thousands of trajectories.
ACCELERATOR = Platform(row=131_072, small_row=131_072, rows=64, tail=(1, 4096), options={})


def platform(name: str | None = None) -> Platform:
    """Settings for the platform ``name`` (``"cpu"``, ``"cuda"``, ...), by default the one for which
    programs are traced."""
    if (traced_for() if name is None else name) != "cpu":
        return ACCELERATOR
    # By a call of compile_quickly or by the environment, see WHOLE_LOOPS.
    return CPU_WHOLE if WHOLE_LOOPS in os.environ.get("XLA_FLAGS", "") else CPU


Options = Mapping[str, bool | int | str]


def _known(chosen: Mapping[str, bool | int | str]) -> Options:
    """Compiler options of ``chosen`` that the environment does not set; none if this jaxlib does
    not know all of them."""
    flags = os.environ.get("XLA_FLAGS", "")
    return dict(_admitted(tuple((k, v) for k, v in chosen.items() if k not in flags)))


@functools.cache
def _admitted(options: tuple[tuple[str, bool | int | str], ...]) -> tuple:
    if _knows_flags():
        return options
    try:
        jax.jit(lambda x: x, compiler_options=dict(options)).lower(0.0).compile()
    except (jax.errors.JaxRuntimeError, ValueError):
        return ()
    return options


def quick_options() -> Options:
    """Compiler options that shorten compilation and widen vectors, where this platform and this
    jaxlib know them. Options set by the environment stay."""
    return _known(platform().options)


def single_options() -> Options:
    """Compiler options for the motion of one trajectory."""
    return _with(SINGLE)


def brief_options() -> Options:
    """Compiler options for programs that run for a shorter time than others take to compile."""
    return _with(BRIEF)


def _with(more: Mapping[str, int]) -> Options:
    """Options of :func:`quick_options` and ``more`` for machine code of a CPU."""
    return _known({**platform().options, **(more if traced_for() == "cpu" else {})})


def no_options() -> Options:
    """Compiler options for programs that run for a long time: those of the process."""
    return {}


def compile_quickly() -> None:
    """Compile this process's programs with the solvers' options, and whole loops as machine code.

    Call it before JAX is used. Python then searches for reference cycles less often
    (:func:`collect_seldom`), and the flags of the compiler are set::

        >>> import os
        >>> jfric.compile_quickly()
        >>> "xla_backend_extra_options" in os.environ["XLA_FLAGS"]
        True
    """
    collect_seldom()
    if not _knows_flags():
        return
    flags = os.environ.get("XLA_FLAGS", "")
    options = f"{WHOLE_LOOPS},{VECTORS},{TOLD_APART}"
    for name, value in (QUICK | WIDE).items():
        if name not in flags:
            chosen = str(value).lower() if isinstance(value, bool) else value
            flags = f"{flags} --{name}={chosen}".strip()
    if "xla_backend_extra_options" not in flags:
        flags = f"{flags} --xla_backend_extra_options={options}"
    os.environ["XLA_FLAGS"] = flags


def _knows_flags() -> bool:
    """Whether the flags of this jaxlib are known; an unknown flag makes XLA end the process."""
    return tuple(int(x) for x in version("jaxlib").split(".")[:2]) <= (0, 10)


def compiles_lowered() -> bool:
    """Whether programs of lowered loops compile within seconds in this process: on a CPU only after
    :func:`compile_quickly`."""
    return traced_for() != "cpu" or VECTORS in os.environ.get("XLA_FLAGS", "")


def warn_if_lowered_compiles_slowly() -> None:
    """Remark on slow compilation where :func:`compiles_lowered` is False."""
    if compiles_lowered():
        return
    remedy = "call jfric.compile_quickly() before JAX is used"
    if not _knows_flags():
        remedy = "use a jaxlib up to 0.10, or kernel='general'"
    remark(
        "kernel: 'lowered' compiles for half a minute and with derivatives for many minutes in "
        f"this process, for slower programs; {remedy}"
    )


def kernel_arrays() -> int:
    """Largest number of arrays, read and written, of a kernel of scalars.

    On a CPU XLA ends the process at 1,000 results, the number of arrays that are read or written.
    Without :func:`compile_quickly` loops of more than 250 arrays stay scalar, or first compare all
    pairs of them, which overflows the stack of the compiler. CUDA passes 4 KiB of pointers to a
    kernel, two for each array that is read or written.
    """
    if traced_for() != "cpu":
        return 250
    return 900 if TOLD_APART in os.environ.get("XLA_FLAGS", "") else 200


def collect_seldom() -> None:
    """Let Python search for reference cycles a hundred times less often.

    Tracing makes millions of objects and next to no cycles; the search takes a tenth of the time of
    a short command.
    """
    gc.set_threshold(100_000, 50, 100)


def cache_directory() -> Path | None:
    """Folder of compiled programs: ``JFRIC_CACHE_DIR`` (``0`` or empty: none), else in the user's
    cache folder."""
    chosen = os.environ.get("JFRIC_CACHE_DIR")
    if chosen is not None:
        return None if chosen in ("", "0") else Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with contextlib.suppress(RuntimeError):  # no home folder
        return (Path(base) if base else Path.home() / ".cache") / "jfric" / "xla"
    return None


def use_compilation_cache() -> None:
    """Keep compiled programs for later processes; without a writable folder, do nothing."""
    directory = cache_directory()
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(directory, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    _silence_cache_loads()


def compilation_folder() -> Path | None:
    """Folder of JAX's compilation cache; None where it has none."""
    on = getattr(jax.config, "jax_enable_compilation_cache")  # noqa: B009
    folder = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009
    return Path(folder) if on and folder else None


def _silence_cache_loads() -> None:
    """Silence false alarms that XLA logs, in kilobytes, about every cached program on some
    processors (https://github.com/jax-ml/jax/issues/38445)."""
    # jax itself sets TF_CPP_MIN_LOG_LEVEL to 1.
    if "JAX_LOGGING_LEVEL" in os.environ or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        return
    jax.config.update("jax_logging_level", "CRITICAL")
    for name in ("jax", "jaxlib"):  # only XLA is meant
        logging.getLogger(name).setLevel(logging.WARNING)
