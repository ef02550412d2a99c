#!/usr/bin/env bash
# Takes docs/page.png anew, from the page that the last `make demo` left, the numbered page of the guide to reports from
# the demo's tables, and docs/pictures from a real Airflow, which the test that sits in front of it brings up (about four
# minutes). Needs Chromium or Chrome.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(realpath "${PULSELINE_HOME:-.pulseline}")/reports/flights/main/index.html"
[ -f "$page" ] || { echo "pictures: no page at $page: run make demo first" >&2; exit 2; }
browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome)" ||
    { echo "pictures: needs chromium or google-chrome on PATH" >&2; exit 2; }
profile="$(mktemp -d)"
trap 'rm -rf "$profile"' EXIT

sandbox=()
[ "$(id -u)" -ne 0 ] || sandbox=(--no-sandbox)  # Chromium refuses to run as root with one
"$browser" --headless "${sandbox[@]}" --disable-gpu --disable-background-networking --no-first-run --hide-scrollbars \
    --user-data-dir="$profile" --force-device-scale-factor=0.75 --window-size=1280,2165 \
    --screenshot="$PWD/docs/page.png" "file://$page" 2>/dev/null
echo "docs/page.png: $(wc -c < docs/page.png) bytes; look at it before you commit it"

bash docs/annotated.sh

PULSELINE_PICTURES="$PWD/docs/pictures" .venv/bin/python -m pytest -q tests/dags/test_ui.py
echo "docs/pictures: $(ls docs/pictures | tr '\n' ' ')"
