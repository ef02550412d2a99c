#!/usr/bin/env bash
# Takes docs/pictures/annotated.png anew: the page of the last `make demo` with a check that some of its flights break, numbered.
# The demo's tables and the flow's file stay as they are: both are copied. Needs Chromium or Chrome.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home="$(realpath "${PULSELINE_HOME:-.pulseline}")"
[ -d "$home/flights/main" ] || { echo "annotated: no run of flights in $home: run make demo first" >&2; exit 2; }
browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome)" ||
    { echo "annotated: needs chromium or google-chrome on PATH" >&2; exit 2; }
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT

mkdir "$made/tables"
cp -r "$home/flights" "$made/tables/flights"
cp -r config "$made/config"
python3 - "$made/config/flows/flights.yaml" <<'PYTHON'
import pathlib
import sys

check = "expect_column_values_to_be_between: {column: dep_delay, max_value: 120}"
file = pathlib.Path(sys.argv[1])
flow = file.read_text()
under = "    late: divert\n"
assert flow.count(under) == 1
file.write_text(flow.replace(under, f"{under}    expect:\n      - {check}\n        severity: warning\n"))
PYTHON
export PULSELINE_HOME="$made/tables" PULSELINE_CONFIG="$made/config"
.venv/bin/pulseline check flights > "$made/said" || cat "$made/said"
.venv/bin/pulseline report flights
page="$made/tables/reports/flights/main/index.html"
python3 - "$page" "$made/page.html" <<'PYTHON'
import pathlib
import sys

page, numbers = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path("docs/annotated.css").read_text()
pathlib.Path(sys.argv[2]).write_text(page.replace("</style>", f"{numbers}</style>", 1))
PYTHON

sandbox=()
[ "$(id -u)" -ne 0 ] || sandbox=(--no-sandbox)  # Chromium refuses to run as root with one
"$browser" --headless "${sandbox[@]}" --disable-gpu --disable-background-networking --no-first-run --hide-scrollbars \
    --user-data-dir="$made/profile" --force-device-scale-factor=0.75 --window-size=1280,3290 \
    --screenshot="$PWD/docs/pictures/annotated.png" "file://$made/page.html" 2>/dev/null
echo "docs/pictures/annotated.png: $(wc -c < docs/pictures/annotated.png) bytes; look at it before you commit it"
