#!/bin/sh
# What CI runs, and what you can run before you push. Further options are handed on: ./ci.sh --workers 8
set -eu
cd "$(dirname "$0")"

if [ "${GITHUB_ACTIONS:-}" = true ]; then
    set -- --format github "$@"
fi
exec layoutproof check gates.py programs --baseline baseline.json "$@"
