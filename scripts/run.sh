#!/bin/sh
# The main job: compare jfric with published values, simulate VE0116 and draw it, sweep its
# coefficient of friction over 100,000 values and draw the staircase of stop times, then fit the
# coefficient to a noisy trajectory.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
"$root/scripts/install.sh"
jfric="${JFRIC_VENV:-$root/.venv}/bin/jfric"
cd "$root"
"$jfric" verify
"$jfric" run configs/ve0116.toml --plot
"$jfric" sweep configs/ve0116.toml --vary friction.mu=0.05:0.3:100000 \
    --observe final.u,stop_time,dissipated --plot
"${JFRIC_VENV:-$root/.venv}/bin/python" experiments/identify_mu.py
