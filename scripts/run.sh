#!/bin/sh
# The first look, in some two minutes: VE0116 simulated, compared and drawn; its coefficient of
# friction swept over 100,000 values and fitted to a noisy trajectory; then all cases of the five
# published sources. Each step says what it does and where its pictures are.
set -eu
# What is not compiled yet is compiled as it is first used, and kept.
unset PYTHONDONTWRITEBYTECODE
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
began=$(date +%s)
say() {
    printf '\n== %s (%d s so far)\n' "$1" "$(($(date +%s) - began))"
}
say "1 of 5: install into ${JFRIC_VENV:-.venv}, some seconds to a minute the first time"
"$root/scripts/install.sh"
jfric="${JFRIC_VENV:-$root/.venv}/bin/jfric"
cd "$root"
say "2 of 5: VE0116, a mass that friction stops, compared with its published values; about 10 s"
"$jfric" run configs/ve0116.toml --plot
say "3 of 5: the same for 100,000 coefficients of friction; about 15 s"
"$jfric" sweep configs/ve0116.toml --vary friction.mu=0.05:0.3:100000 \
    --observe final.u,stop_time,dissipated --plot
say "4 of 5: the coefficient of friction fitted to a noisy trajectory; about 15 s"
"${JFRIC_VENV:-$root/.venv}/bin/python" experiments/identify_mu.py
say "5 of 5: all cases of the published sources; about a minute and a half"
"$jfric" verify --case 've*' --case 'sdnd*' --case 'ssnd*' --case 'janovsky*'
say "done; pictures are in results/, all other checks are: make verify"
