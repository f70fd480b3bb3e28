#!/bin/sh
# The documentation as pages that open from disk: scripts/site.sh [FOLDER], results/site unless
# given. Warnings are errors, and so is a link that leads nowhere, and a case of the verification
# manual outside its tolerance.
#
# JFRIC_DOCS_MANUAL='c8*': only these cases in the manual; off: none. JFRIC_DOCS_EXECUTE=off: pages
# without what they compute. For a look at text; the manual is kept while code and files are as they
# were.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-$root/results/site}
"$root/scripts/install.sh" docs
python="${JFRIC_VENV:-$root/.venv}/bin/python"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m sphinx -W --keep-going -q -j 2 -b html -d "$work" "$root/docs" "$folder"
PYTHONPATH="$root/docs" "$python" -m generators.check_links "$folder"
echo "$folder/index.html"
