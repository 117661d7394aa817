#!/bin/sh
# Runs TLC on every configuration and records what it says in docs/evidence/tlc.json. TLA2TOOLS_JAR names
# the jar; without it the released one is downloaded and checked.
#   designs/tlc.sh            everything anew
#   designs/tlc.sh -resume    only what has changed, or is not recorded yet
#   designs/tlc.sh FILE...    these configurations, and record nothing
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
"" | -*)
    mkdir -p docs/evidence
    exec go run ./internal/tlcrun -o docs/evidence/tlc.json "$@"
    ;;
*) exec go run ./internal/tlcrun "$@" ;;
esac
