#!/bin/sh
# The tests. Arguments go to pytest: scripts/test.sh -k impact
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
"$root/scripts/install.sh" dev
cd "$root"
exec "${JFRIC_VENV:-$root/.venv}/bin/python" -m pytest -n 2 "$@"
