#!/bin/sh
# Runs TLC on every configuration and records what it says in docs/evidence/tlc.json; with file names as
# arguments, only on those, and records nothing. TLA2TOOLS_JAR names the jar; without it the released one
# is downloaded and checked.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    exec go run ./internal/tlcrun "$@"
fi
mkdir -p docs/evidence
exec go run ./internal/tlcrun -o docs/evidence/tlc.json
