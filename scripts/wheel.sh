#!/bin/sh
# Build the wheel, install it into an empty environment, and use it from another folder, where
# nothing of the repository is: the commands of the README, a sweep, a fit, a page, the plugin of
# pytest. scripts/wheel.sh [--all]: verify the whole list, not one case of it.
#
# PYTHON: the interpreter to use.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
case=${1:-"--case=ve0116*"}
[ "$case" != --all ] || case=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
"${PYTHON:-python3}" -m venv "$work/venv"
python="$work/venv/bin/python"
pip="$python -m pip --disable-pip-version-check --quiet"
$pip wheel --no-deps --wheel-dir "$work" "$root"
wheel=$(echo "$work"/jfric-*.whl)
$pip install --constraint "$root/constraints.txt" "$wheel[sweep,view]" pytest
mkdir "$work/elsewhere"
cd "$work/elsewhere"
PATH="$work/venv/bin:$PATH"
export PATH

python -c "import jfric; print(jfric.__file__)" | grep "^$work/venv/" > /dev/null
version=$(python -c "from importlib.metadata import version; print(version('jfric'))")
jfric --version | tee version.txt
grep "^jfric $version " version.txt > /dev/null

# What README.md shows: its commands and its Python.
python - "$root/README.md" <<'README'
import pathlib, re, subprocess, sys
text = pathlib.Path(sys.argv[1]).read_text("utf-8")
blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)
lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
lines = [line for line in lines if line.startswith("jfric ")]
assert lines, "README.md shows no command"
for line in lines:
    print("$", line, flush=True)
    subprocess.run(line, shell=True, check=True)
for code in [block for kind, block in blocks if kind == "python"]:
    printed = re.findall(r"print\(.*\)  # (.*)", code)
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.splitlines() == printed, found.stdout
README

jfric verify ${case:+"$case"}
jfric init ve0116 system.toml
jfric run system.toml --plot
jfric sweep system.toml --vary friction.mu=0.05:0.3:50 --observe final.u,stop_time --plot
jfric init fit measured.toml
jfric fit measured.toml --data measured.csv --free friction.limit=0.05:2 --report fit.html
for folder in results/system results/measured; do
    jfric view "$folder"
done
pytest -q --jfric system.toml
ls results/*
