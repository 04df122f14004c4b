#!/bin/sh
# Writes a small simulated incident into a folder, converts and reports it.
# usage: demo.sh SGTRACE DIR
set -eu
sgtrace=$1
dir=$2

say() { printf '\n$ %s\n' "$*"; }
run() { say "$@"; "$@"; }

run "$sgtrace" demo "$dir"
run "$sgtrace" inspect "$dir/otel.jsonl"
run "$sgtrace" report "$dir/otel.jsonl" "$dir/torch"
run "$sgtrace" report --by-rank --table ranks.steps "$dir/otel.jsonl"
run "$sgtrace" report -o "$dir/report.html" "$dir/otel.jsonl" "$dir/torch"
run "$sgtrace" requests --sort -e2e --limit 10 "$dir/otel.jsonl"
run "$sgtrace" report --kernels --limit 10 "$dir/nsys"
run "$sgtrace" merge --torch "$dir/torch" --nsys "$dir/nsys" --otel "$dir/otel.jsonl" -o "$dir/merged.pftrace"
run "$sgtrace" convert otel2perfetto "$dir/otel.jsonl" --slowest 10:ttft -o "$dir/slowest.json.gz"

cat <<EOF

Results are in $dir/:
  otel.jsonl       the dump, as SGLang's tracing writes it through an OpenTelemetry Collector
  truth.json       what was planted: the slow rank, the clocks, the overload, the slow requests
  torch/           what PyTorch's profiler saw on every rank for 600 ms of it
  nsys/            what Nsight Systems saw on every host at the same time
  report.html      everything that sgtrace has to say about it, to look at in a browser
  merged.pftrace   every request and every rank on one clock: '$sgtrace open $dir/merged.pftrace'
  slowest.json.gz  the ten slowest to the first token, as Chrome JSON
EOF
