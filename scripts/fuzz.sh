#!/bin/sh
# Runs every fuzz test for the given time, one after the other: sh scripts/fuzz.sh 30s
# What one finds is kept in the testdata/fuzz beside it, and is to be checked in:
# make test replays it.
set -eu
time=$1
failed=
for pkg in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "== $pkg $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 20x "$pkg" || failed="$failed $pkg:$name"
	done
done
[ -z "$failed" ] || { echo "found something:$failed"; exit 1; }
