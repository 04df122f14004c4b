#!/bin/sh
# Shows that a change of the source changes nothing that sgtrace prints or writes.
# usage: compare.sh [-quick] [-base COMMIT] [-run REGEXP] ...
set -eu
cd "$(dirname "$0")/.."
exec go run ./scripts/compare "$@"
