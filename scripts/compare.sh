#!/bin/sh
# Runs two builds of sgtrace on every input at hand, and says where they print, write, or
# exit differently. It is for changes that must not be seen from outside.
# usage: compare.sh OLD NEW DIR [PATTERN]
#
# OLD and NEW are programs. Results go to DIR/old and DIR/new, one folder for each run, with
# its output, its exit status, and its files; of files over 256 kB, only the checksums stay.
# DIR/old is kept and used again while OLD is the same program. PATTERN, a regular expression,
# chooses runs by their names, such as '^report ' or 'demo$'.
# Inputs are those of a demo and of $SGTRACE_SHARED (../shared). All runs take most of an hour;
# SGTRACE_EVERY=17 does every 17th, which reaches each input and each flag. SGTRACE_JOBS of
# them run at once: 2.
set -eu

if [ "$1" = --run ]; then # one run: --run PROGRAM DIR NAME ARGUMENTS...
	program=$2 dir=$3/$(printf %s "$4" | tr ' /' '_.')
	shift 4
	[ ! -f "$dir/status" ] || exit 0
	mkdir -p "$dir" && cd "$dir"
	echo "$*" >arguments
	if [ "$1" = sql ]; then # it writes its clocks into the dataset: each build has a copy
		cp -r "$2" dataset && set -- sql dataset
	fi
	status=0
	timeout "${SGTRACE_TIMEOUT:-300}" nice "$program" "$@" >stdout 2>stderr </dev/null || status=$?
	# A page says which build made it, and when.
	find . -name '*.html' -exec sed -i 's,<footer><p>sgtrace [^<]*,<footer><p>,' {} +
	find . -type f -size +256k | while read -r file; do
		sha256sum <"$file" >"$file.sha256"
		rm "$file"
	done
	echo "$status" >status
	exit
fi

old=$(realpath "$1") new=$(realpath "$2") dir=$(realpath -m "$3") pattern=${4:-.}
script=$(realpath "$0")
data=$(realpath "${SGTRACE_SHARED:-$(dirname "$script")/../../shared}")/data
[ -d "$data" ] || echo "note: no shared data ($data): only the demo is compared"
mkdir -p "$dir"
export COLUMNS=110 TERM=dumb TZ=UTC LC_ALL=C

# What OLD printed is stale when OLD is another program.
sum=$(sha256sum <"$old")
[ "$(cat "$dir/old.sha256" 2>/dev/null)" = "$sum" ] || rm -rf "$dir/old"
echo "$sum" >"$dir/old.sha256"
rm -rf "$dir/new"

# The demo and the datasets, made by OLD, are inputs of both.
demo=$dir/inputs
if [ ! -f "$demo/done" ]; then
	rm -rf "$demo" && mkdir -p "$demo"
	"$old" demo "$demo/demo" >/dev/null
	"$old" extract -o "$demo/dataset" "$demo/demo/otel.jsonl" "$demo/demo/torch" "$demo/demo/nsys" >/dev/null 2>&1
	"$old" merge "$demo/demo/torch" -o "$demo/merged.json" >/dev/null 2>&1 # what we wrote, read again
	printf '%032d\n' 7 >"$demo/key"
	touch "$demo/done"
fi

# inputs prints one input a line: its name, then the files.
inputs() {
	echo "demo $demo/demo/otel.jsonl $demo/demo/torch $demo/demo/nsys"
	echo "demo.otel $demo/demo/otel.jsonl"
	echo "demo.torch $demo/demo/torch"
	echo "demo.nsys $demo/demo/nsys"
	echo "demo.dataset $demo/dataset"
	echo "demo.merged $demo/merged.json"
	[ -d "$data" ] || return 0
	cd "$data"
	find . -type f ! -path '*/hta_expected/*' ! -path '*/tracelens/*' ! -path '*.parquet' ! -name '*.csv' \
		! -name '*.truth.json' ! -name '*.md' ! -name '*.yaml' ! -name '*ground_truth*' | sed 's,^\./,,' | sort | while read -r file; do
		echo "$file $data/$file"
	done
	for folder in torch/tp8_skew_2host reality/dlrm reality/nsys/parquetdir_2023.4 reality2 merge nsys/synth otel/f_collector_variants; do
		[ ! -d "$folder" ] || echo "$folder/ $data/$folder"
	done
}

# runs prints one run a line: its name, a tab, the arguments.
runs() {
	tab=$(printf '\t')
	inputs | while read -r name files; do
		run() { echo "$(echo "$*" | sed "s,$demo/,,") $name$tab$* $files"; }
		run report
		for flag in --by-rank --timeline --fleet --latency --by-stage --by-request '--by host' --kernels --launches \
			--api --memcpy --nvtx --nvtx-kernels --gaps --ops --stacks '--tail p90'; do
			run report "$flag"
			run report "$flag" --format json
		done
		run report --format json
		run report --all-findings --evidence --slo ttft=500ms,itl=50ms
		run report --redact-key "$demo/key" --format markdown
		run report -o report.html
		run inspect
		run inspect --format json
		run requests
		run requests --format json
		run live --at +1s
		run merge -o out.pftrace
		run merge -o out.json
		run merge --layout compare --clock-report clocks.json -o out.pftrace
		run merge --cat kernel --args min --split 1s --verify -o out.pftrace
		run convert otel2perfetto --view request -o out.pftrace
		run convert nsys2perfetto -o out.json
		run extract -o dataset
		run diff --at +100ms
		run diff --at +1s --format json
	done
	pair() { # name, before, after
		for flags in "" --by-rank --ops --gaps "--format json" "-o diff.html"; do
			echo "diff $flags $1${tab}diff $flags $2 $3"
		done
	}
	pair demo.torch "$demo/demo/torch" "$demo/demo/torch"
	echo "sql dataset${tab}sql $demo/dataset"
	echo "dataset ls${tab}dataset ls $demo/dataset"
	echo "dataset verify${tab}dataset verify $demo/dataset"
	for topic in metrics findings gate agents schema kernel-classes formats; do
		echo "help $topic${tab}help $topic"
	done
	for command in convert merge report diff requests request live inspect extract dataset sql open demo; do
		echo "help $command${tab}help $command"
		echo "man $command${tab}help man $command"
	done
	[ -d "$data" ] || return 0
	before=
	for after in "$data"/otel2/*.zst "$data"/reality/trace_diff/* "$data"/nsys/synth/*; do
		[ -z "$before" ] || pair "$(basename "$before") $(basename "$after")" "$before" "$after"
		before=$after
	done
}

runs | awk -F '\t' -v pattern="$pattern" -v every="${SGTRACE_EVERY:-1}" '$1 ~ pattern && n++ % every == 0' >"$dir/runs"
echo "$(wc -l <"$dir/runs") runs of each build, results in $dir"
for side in old new; do
	[ $side = old ] && program=$old || program=$new
	# Names and paths have no quotes; a tab becomes the border between name and arguments.
	awk -F '\t' -v program="$program" -v dir="$dir/$side" -v script="$script" \
		'{ print "sh " script " --run " program " " dir " \"" $1 "\" " $2 }' "$dir/runs" |
		tr '\n' '\0' | xargs -0 -P "${SGTRACE_JOBS:-2}" -I{} sh -c '{}'
done

# Only the runs chosen now count: DIR/old may have more.
different=0
while IFS=$(printf '\t') read -r name _; do
	run=$(printf %s "$name" | tr ' /' '_.')
	if ! diff -r "$dir/old/$run" "$dir/new/$run" >"$dir/diff" 2>&1; then
		different=$((different + 1))
		echo "--- $name"
		head -n 20 "$dir/diff" | cut -c 1-300
	fi
done <"$dir/runs"
rm -f "$dir/diff"
echo "$different of $(wc -l <"$dir/runs") runs differ"
[ $different = 0 ]
