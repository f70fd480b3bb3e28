#!/bin/sh
# The main job: compare jfric with published values, then simulate VE0116 and draw it.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
"$root/scripts/install.sh"
jfric="${JFRIC_VENV:-$root/.venv}/bin/jfric"
cd "$root"
"$jfric" verify
"$jfric" run configs/ve0116.toml --plot
