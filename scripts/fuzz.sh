#!/bin/sh
# Runs every fuzz test for the given time: sh scripts/fuzz.sh 30s
set -eu
time=$1
for pkg in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "== $pkg $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 20x "$pkg"
	done
done
