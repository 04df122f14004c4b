#!/bin/sh
# Converts and reports a large dump, and merges eight large PyTorch traces, beside
# a bare decompression of each; then a large Nsight Systems export.
# usage: bench.sh SGTRACE [DUMP]
#
# Without a dump, $SGTRACE_SHARED (or ../shared) is looked at, else one is
# simulated; the traces and the export are made up. The export has NSYS_ROWS rows of
# kernels and calls, 12500000 unless told: two gigabytes, made in a minute.
# Prints wall time, CPU time, peak memory and MB/s of input.
set -eu
sgtrace=$1
dump=${2:-${SGTRACE_SHARED:-../shared}/data/otel/d_big_tp2.jsonl.zst}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

if [ -e "$dump" ]; then
	case $dump in
	*.zst) zstd -qdc "$dump" >"$dir/otel.jsonl" ;;
	*) cp "$dump" "$dir/otel.jsonl" ;;
	esac
else
	"$sgtrace" demo --requests 6000 "$dir" 2>/dev/null
fi
bytes=$(wc -c <"$dir/otel.jsonl")
echo "input: $bytes bytes of JSON"

# measure NAME COMMAND...: the best of three runs.
measure() {
	name=$1
	shift
	for _ in 1 2 3; do
		/usr/bin/time -a -o "$dir/times" -f '%e %U %S %M' "$@" >/dev/null 2>"$dir/err" || test $? -eq 3
	done
	sort -n "$dir/times" | head -1 | awk -v name="$name" -v bytes="$bytes" \
		'{ printf "%-28s %6.2f s wall %6.2f s cpu %8.1f MB peak %7.0f MB/s\n", name, $1, $2 + $3, $4 / 1000, bytes / 1e6 / ($1 > 0 ? $1 : 0.01) }'
	rm "$dir/times"
}

if command -v zstd >/dev/null; then
	zstd -q "$dir/otel.jsonl" -o "$dir/otel.zst"
	measure 'zstd -dc (bare)' zstd -qdc "$dir/otel.zst"
fi
measure 'cat (bare)' cat "$dir/otel.jsonl"
measure 'report' "$sgtrace" report "$dir/otel.jsonl"
measure 'report --by-stage' "$sgtrace" report --by-stage "$dir/otel.jsonl"
measure 'report --by-rank' "$sgtrace" report --by-rank "$dir/otel.jsonl"
measure 'convert, both views' "$sgtrace" convert otel2perfetto "$dir/otel.jsonl" -o "$dir/out.pftrace"
measure 'convert, thread view' "$sgtrace" convert otel2perfetto --view thread "$dir/otel.jsonl" -o "$dir/out.pftrace"
measure 'convert, .pftrace.gz' "$sgtrace" convert otel2perfetto "$dir/otel.jsonl" -o "$dir/out.pftrace.gz"
measure 'convert, Chrome JSON' "$sgtrace" convert otel2perfetto "$dir/otel.jsonl" -o "$dir/out.json"

go run ./scripts/benchdata -mb 100 "$dir/ranks"
bytes=$(cat "$dir"/ranks/torch/*.gz | gzip -dc | wc -c)
echo "input: eight PyTorch traces, $bytes bytes of JSON"
measure 'gzip -dc (bare)' sh -c "cat $dir/ranks/torch/*.gz | gzip -dc"
measure 'merge' "$sgtrace" merge "$dir/ranks/torch" -o "$dir/out.pftrace"
measure 'merge --layout ranks' "$sgtrace" merge "$dir/ranks/torch" --layout ranks -o "$dir/out.pftrace"
measure 'merge --cat kernel --args none' "$sgtrace" merge "$dir/ranks/torch" --cat kernel --args none -o "$dir/out.pftrace"
measure 'merge, .pftrace.gz' "$sgtrace" merge "$dir/ranks/torch" -o "$dir/out.pftrace.gz"

go run ./scripts/benchdata -mb 1000 -ranks 1 "$dir/one"
gzip -d "$dir"/one/torch/*.gz
bytes=$(cat "$dir"/one/torch/* | wc -c)
echo "input: one PyTorch trace, $bytes bytes of JSON"
measure 'cat (bare)' cat "$dir"/one/torch/*
measure 'merge' "$sgtrace" merge "$dir/one/torch" -o "$dir/out.pftrace"
measure 'merge, one core' env GOMAXPROCS=1 "$sgtrace" merge "$dir/one/torch" -o "$dir/out.pftrace"

go run ./scripts/benchdata -nsys-rows "${NSYS_ROWS:-12500000}" "$dir/nsys"
bytes=$(wc -c <"$dir/nsys/node0.sqlite")
echo "input: one Nsight Systems export, $bytes bytes of SQLite"
measure 'cat (bare)' cat "$dir/nsys/node0.sqlite"
for report in kernels api nvtx nvtx-kernels launches; do
	measure "report --$report" "$sgtrace" report --$report "$dir/nsys"
done
measure 'inspect' "$sgtrace" inspect "$dir/nsys"
measure 'convert nsys2perfetto' "$sgtrace" convert nsys2perfetto "$dir/nsys/node0.sqlite" -o "$dir/out.pftrace"
