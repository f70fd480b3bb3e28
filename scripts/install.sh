#!/bin/sh
# Create the virtual environment .venv if needed and install jfric into it, at the exact versions
# of constraints.txt. Does nothing when nothing changed since the last time.
#
#     scripts/install.sh [EXTRA]      EXTRA: dev for tests and checks; by default sweep,view, with
#                                     what the commands need
#
# PYTHON: the interpreter to use. JFRIC_VENV: another folder for the environment.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
extra=${1-sweep,view}
venv=${JFRIC_VENV:-$root/.venv}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
        if is_recent "$name"; then
            echo "$name"
            return
        fi
    done
    echo "jfric needs Python 3.11 or newer; set PYTHON to its path" >&2
    exit 1
}

# What the environment depends on: a change of it installs again.
state=$(cd "$root" && cat pyproject.toml constraints.txt scripts/install.sh | cksum)
state="$state $root"
stamp="$venv/installed-${extra:-base}"

if ! is_recent "$venv/bin/python"; then
    python=$(find_python)
    "$python" -m venv --clear "$venv"
fi
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$state" ]; then
    echo "installing into $venv" >&2
    set -- --constraint "$root/constraints.txt" --editable "$root${extra:+[$extra]}"
    # uv takes seconds where pip takes minutes; where it finds no packages, pip installs them.
    uv=$(command -v uv || echo "$venv/bin/uv")
    [ -x "$uv" ] || "$venv/bin/python" -m pip install -qq uv || true
    "$uv" pip install --quiet --python "$venv/bin/python" "$@" ||
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    echo "$state" > "$stamp"
fi
