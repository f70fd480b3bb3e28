#!/bin/sh
# The tests. Arguments go to pytest: scripts/test.sh -k impact
# Tests of one file share compiled problems: they stay in one process.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
"$root/scripts/install.sh" dev
cd "$root"
# Processes that tests start need not compile the package's modules each.
PYTHONDONTWRITEBYTECODE=
export PYTHONDONTWRITEBYTECODE
exec "${JFRIC_VENV:-$root/.venv}/bin/python" -m pytest -n 2 --dist loadfile --no-loadscope-reorder "$@"
