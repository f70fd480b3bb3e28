#!/bin/sh
# A short, telling part of the tests at the oldest and at the newest versions that pyproject.toml
# allows, each in an environment of its own: scripts/versions.sh oldest|newest [PYTHON]
#
# oldest: every dependency at its lower bound, on the oldest Python; newest: whatever the package
# index has, on the newest. PYTHON: the interpreter, python3.11 and python3.13 unless given.
# JFRIC_VERSIONS: a folder that keeps the environments; a temporary one otherwise.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
which=${1:?"oldest or newest"}
case $which in
    oldest) python=${2:-python3.11} ;;
    newest) python=${2:-python3.13} ;;
    *) echo "found '$which', allowed are oldest and newest" >&2; exit 2 ;;
esac
work=${JFRIC_VERSIONS:-$(mktemp -d)}
[ -n "${JFRIC_VERSIONS:-}" ] || trap 'rm -rf "$work"' EXIT
venv="$work/$which"
"$python" -m venv --clear "$venv"

# The bounds as pins: "jax>=0.10.1,!=0.10.2" is jax==0.10.1.
"$venv/bin/python" - "$root/pyproject.toml" > "$work/$which.txt" <<'PINS'
import re, sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
wanted = [*project["dependencies"], *(d for e in ("sweep", "view") for d in project["optional-dependencies"][e])]
print("\n".join(f"{m[1]}=={m[2]}" for d in wanted if (m := re.match(r"([\w-]+)>=([\w.]+)", d))))
PINS
[ "$which" = oldest ] || : > "$work/$which.txt"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$work/$which.txt" "$root[sweep,view]" pytest hypothesis beartype
cd "$work"
"$venv/bin/jfric" --version
"$venv/bin/jfric" verify --case "ve0116*"
# The tests of the repository against the installed package.
cp -r "$root/tests" "$root/experiments" "$root/configs" "$root/pyproject.toml" "$work"
"$venv/bin/python" -m pytest -o addopts= -q -m "not slow" -p no:cacheprovider \
    tests/test_rules.py tests/test_cross_checks.py tests/test_protocol.py
