"""Settings of all tests: float64, and compiled programs kept from one run to the next."""

import os
from pathlib import Path

import jax

from jfric.compilation import compile_quickly, use_compilation_cache

jax.config.update("jax_enable_x64", True)
os.environ.setdefault(
    "JFRIC_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla")
)
compile_quickly()
use_compilation_cache()
