package reports

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Flags returns the flags of the reports and of their options, new ones with each call. The program adds
// those that all reports take.
func Flags() []cli.Flag {
	flags := order.Each(All, (*Report).flag)
	return slices.Concat(flags, options(), MuteFlags(with("mute")))
}

// options returns the flags that only some reports take.
func options() []cli.Flag {
	text := func(name, usage string) cli.Flag { return &cli.StringFlag{Name: name, Usage: with(name) + usage} }
	return []cli.Flag{
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: with("o") + "write one HTML page, `FILE`.html"},
		text("slo", "goodput: which requests keep `METRIC=LIMIT`,... such as ttft=500ms,itl=50ms"),
		text("fail-on", "exit status 4 on findings of `KIND`,... ('sgtrace help findings'), and on goodput<N%"),
		&cli.BoolFlag{Name: "all-findings", Usage: with("all-findings") + "all findings, not only the top 3", DisableDefaultText: true},
		&cli.BoolFlag{Name: "evidence", Usage: with("evidence") + "all that speaks for a finding, not only the first two sentences", DisableDefaultText: true},
		&cli.BoolFlag{Name: "whatif", Usage: with("whatif") + "what latencies would have been without each finding", DisableDefaultText: true},
		&cli.StringFlag{Name: "table", Usage: "print only the table called `NAME`"},
		&cli.StringFlag{Name: "sort", Usage: "sort rows by `COLUMN`; -COLUMN reverses the order"},
		&cli.IntFlag{Name: "limit", Usage: "print the first `N` rows; 0 is all", DefaultText: "all"},
		&cli.BoolFlag{Name: "all-ranks", Usage: "more than 64 ranks: list each, and don't sum them up by host", DisableDefaultText: true},
		text("hosts", "groups of hosts, for findings and sums of ranks: CSV `FILE` with a header such as host,node,rack"),
		CapturesFlag(with("captures")),
		&cli.StringSliceFlag{Name: "metric", Usage: with("metric") + "only `METRIC`: e2e, ttft, itl"},
		&cli.DurationFlag{Name: "bucket", Usage: with("bucket") + "buckets of this `DURATION`", DefaultText: "a length that makes about 60"},
		text("classes", "classes of kernels: `FILE` with lines such as 'communication my_allreduce', or hta"),
		&cli.IntFlag{Name: "ep-size", Usage: with("ep-size") + "`N` GPUs share the experts", DefaultText: "what logs and files tell"},
		&cli.BoolFlag{Name: "open-ranges", Usage: with("open-ranges") + "count ranges that never closed", DisableDefaultText: true},
	}
}

// CapturesFlag returns the flag that names recordings of graph capture. when says when it applies.
func CapturesFlag(when string) cli.Flag {
	return &cli.StringSliceFlag{Name: "captures", Usage: when + "`FOLDER` with traces of CUDA graph capture, or of a run without graphs", DefaultText: "capture_traces beside the inputs"}
}

// MuteFlags returns the flags that [Mutes] reads. when says when they apply.
func MuteFlags(when string) []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "mute", Usage: when + "count findings of `KIND[@PLACE]`, but don't show them"},
		&cli.StringFlag{Name: "mute-file", Usage: when + "the same for each line KIND[@PLACE] of `FILE`"},
	}
}

// with says which reports take an option: "with --tail: ".
func with(option string) string {
	var takers []string
	for _, r := range All {
		if slices.Contains(r.Options, option) {
			takers = append(takers, "--"+r.Name)
		}
	}
	return "with " + strings.Join(takers, ", ") + ": "
}

// TableNames returns the values of --table, sorted.
func TableNames() []string {
	var names []string
	for _, r := range All {
		if r.Takes("table") {
			names = append(names, r.Tables...)
		}
	}
	return order.Distinct(names)
}

// readNamed reads the file that a flag names.
func readNamed[T any](flag, name string, read func(r io.Reader, name string) (T, error)) (of T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return of, commandline.Usage("--%s: %v", flag, err)
	}
	defer f.Close()
	if of, err = read(f, name); err != nil {
		return of, commandline.Usage("--%s: %v", flag, err)
	}
	return of, nil
}
