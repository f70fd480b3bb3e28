#!/bin/sh
# All results of the shipped cases compared with published values and closed forms. Arguments go to
# jfric: scripts/verify.sh --case 've*'
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
"$root/scripts/install.sh"
cd "$root"
exec "${JFRIC_VENV:-$root/.venv}/bin/jfric" verify "$@"
