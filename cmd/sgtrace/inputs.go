package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/inspect"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/urfave/cli/v2"
)

// readsInputs gives a command that reads what people have recorded the flags that all such have, and
// what they do before and after all else.
func (c *command) readsInputs(cmd *cli.Command) {
	cmd.Flags = append(cmd.Flags,
		&cli.StringSliceFlag{Name: "exclude",
			Usage: "skip files and folders whose name matches `GLOB`, such as '*.json' or 'run2/*'"},
		&cli.StringFlag{Name: "max-memory", DefaultText: "a quarter of what the machine has available",
			Usage: "limit memory to `SIZE` (2GB, 800MB); spill the rest to disk"},
		&cli.BoolFlag{Name: "redact", DisableDefaultText: true,
			Usage: "replace hosts, request IDs, paths, and free text with pseudonyms: host-..., req-..., path-..., text-..."},
		&cli.StringFlag{Name: "redact-key", Usage: "like --redact, with the key in `FILE`: the same pseudonyms in every run", DefaultText: "new pseudonyms in every run"})
	cmd.Flags = append(append(cmd.Flags, screen.Flags()...), commandline.ZoneFlag(screen.Category))
	cmd.Before = func(ctx *cli.Context) error {
		for _, start := range [...]cli.BeforeFunc{c.boundMemory, c.startRedaction, c.startScreen, c.startZone} {
			if err := start(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	cmd.After = c.noteMemory
}

// findInputs finds the inputs that arguments name, but for those of --exclude.
func findInputs(ctx *cli.Context, args []string) ([]inputs.Input, error) {
	if len(args) == 0 {
		return nil, commandline.Usage("no input; give dumps, traces, exports, logs, or metrics: files, folders, globs, or - for standard input")
	}
	files, err := inputs.Find(args, ctx.StringSlice("exclude")...)
	limit := ctx.String("max-memory")
	if err != nil || limit == "" {
		return files, err
	}
	if least := leastMemory(files); memory.Budget() < least {
		return nil, commandline.Usage("--max-memory %q: %s is the minimum for inputs that are large, or of unknown size", limit, bytesText(least))
	}
	return files, nil
}

// readsStdin are the commands that take standard input where no input is named, and how many
// arguments come before inputs.
var readsStdin = map[string]int{"report": 0, "requests": 0, "request": 1, "live": 0, "inspect": 0, "extract": 0, "whatif": 0}

// withStdin adds the name of standard input to a command line that names no input, if somebody
// gave one: a file or a pipe with something in it, not a terminal.
func (c *command) withStdin(app *cli.App, args []string) []string {
	name, given := commandline.Positionals(app, args)
	before, reads := readsStdin[name]
	f, ok := c.in.(*os.File)
	if !ok || !reads || given != before {
		return args
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		return args
	}
	say := sync.OnceFunc(func() {
		if !slices.Contains(args, "--quiet") {
			fmt.Fprintf(c.err, "reading standard input, as 'sgtrace %s' names no input\n", name)
		}
	})
	late := time.AfterFunc(time.Second, say) // a pipe that nobody writes to is waited for
	in := bufio.NewReader(f)
	_, err := in.Peek(1)
	late.Stop()
	if c.in = in; err != nil {
		return args
	}
	say()
	return append(slices.Clone(args), inputs.Stdin)
}

// exclusionArgs returns the flags --exclude as they were given.
func (c *command) exclusionArgs(ctx *cli.Context) (args []string) {
	for _, glob := range ctx.StringSlice("exclude") {
		args = append(args, "--exclude", c.redactedInput(glob))
	}
	return args
}

// shortInputs names a directory instead of many files if these are all that it holds:
// what a shell made of a glob fills the screen.
func shortInputs(args, exclude []string) []string {
	const few = 3
	if len(args) <= few {
		return args
	}
	dir := filepath.Dir(args[0])
	if strings.HasPrefix(args[0], "-") || slices.ContainsFunc(args, func(arg string) bool { return filepath.Dir(arg) != dir }) {
		return args
	}
	all, err := inputs.Find([]string{dir}, exclude...)
	given, err2 := inputs.Find(args, exclude...)
	if err != nil || err2 != nil || !slices.Equal(inputs.Names(all), inputs.Names(given)) {
		return args
	}
	return []string{dir}
}

// load reads the inputs that the arguments name and applies the selection flags.
func (c *command) load(ctx *cli.Context, args []string) (*request.Set, error) {
	files, err := findInputs(ctx, args)
	if err != nil {
		return nil, err
	}
	return c.loadFiles(ctx, files, loading{oneClock: true})
}

// loading says how files are read.
type loading struct {
	only     *inputs.Format // inputs of other formats are errors; nil is none
	oneClock bool           // put the hosts on one clock, where they have several
	byID     request.IDTest // of the requests that are needed; nil is all that are selected
}

// loadFiles reads files, applies the selection flags and redacts.
func (c *command) loadFiles(ctx *cli.Context, files []inputs.Input, how loading) (*request.Set, error) {
	set, err := c.readFiles(ctx, files, how)
	if err == nil {
		c.redactRequests(set)
	}
	return set, err
}

// givenZone returns the zone of logs that do not tell theirs; nil is not given.
func (c *command) givenZone(ctx *cli.Context) *time.Location {
	if !ctx.IsSet("tz") {
		return nil
	}
	return c.zone
}

// readFiles reads files and applies the selection flags.
func (c *command) readFiles(ctx *cli.Context, files []inputs.Input, how loading) (*request.Set, error) {
	sel, err := commandline.Read(ctx)
	if err != nil {
		return nil, err
	}
	meter := c.screen.Reading(size(files))
	opt := inputs.Options{Stdin: c.in, Meter: meter, Requests: true, Only: how.only, KeepSecrets: ctx.Bool("keep-secrets"), Zone: c.givenZone(ctx),
		Pick: pick(sel, how.byID, !how.oneClock)}
	in, err := inputs.Load(files, opt, &c.diags)
	c.screen.Doing("analyzing")
	if err != nil {
		return nil, err
	}
	c.read = append(c.read, in.Used...)
	if how.oneClock {
		in.OnOneClock()
	} else {
		in.AsRecorded()
	}
	set := in.Requests
	first, last, _ := set.Bounds()
	c.first, c.last = first, last
	if err := sel.Resolve(first, last); err != nil {
		return nil, err
	}
	there := commandline.ChoicesOf(set, sel)
	if err := set.Select(sel.Selection); err != nil {
		return nil, err
	}
	if !set.Any() {
		return nil, there.Nothing(ctx, sel)
	}
	return set, nil
}

// size adds up the sizes of files; -1 is unknown.
func size(files []inputs.Input) int64 {
	sum := int64(0)
	for _, in := range files {
		size, folder := in.Size()
		if size < 0 || folder {
			return -1
		}
		sum += size
	}
	return sum
}

// minMemory is the least that the program needs, in bytes: buffers of decompressors and
// pieces of the input that are being read.
const minMemory = 128_000_000

// leastMemory is the least that can be kept, in bytes, while inputs are read: what the heap holds of each
// request beside the tables adds up.
func leastMemory(files []inputs.Input) int64 {
	const (
		few    = 300_000_000 // bytes of text
		ofMany = 250_000_000
		packed = 12 // times smaller is a compressed dump
	)
	text := int64(0)
	for i := range files {
		n := size(files[i : i+1])
		if naming.IsCompressed(files[i].Path()) {
			n *= packed
		}
		if text += n; n < 0 || text > few {
			return ofMany
		}
	}
	return minMemory
}

// partOfAvailable is the budget where none is asked for. What cannot move to the
// temporary file may exceed it, up to half of the machine's memory.
const partOfAvailable = 4

// boundMemory sets the budget of the process, and ends it where too much cannot be moved.
func (c *command) boundMemory(ctx *cli.Context) error {
	total, available := memory.Machine()
	budget, bound, hint := available/partOfAvailable, total/2, "half of this machine's memory; --max-memory allows more"
	if total > 0 {
		budget = max(budget, minMemory)
	}
	if text := ctx.String("max-memory"); text != "" {
		var err error
		if budget, err = parseSize(text); err != nil {
			return commandline.Usage("--max-memory %q: %v", text, err)
		}
		bound, hint = budget, "--max-memory "+text
	}
	memory.SetBudget(budget)
	memory.SetBound(bound)
	if bound > 0 {
		c.unwatch = memory.Watch(func() {
			fmt.Fprintf(c.err, "sgtrace: the inputs need more than %s (%s); take fewer of them, or less of each with --from and --to\n", bytesText(bound), hint)
			c.outputs.abandon()
			os.Exit(exitFailed)
		})
	}
	return nil
}

// noteMemory says if there was too little memory.
func (c *command) noteMemory(*cli.Context) error {
	if c.unwatch != nil {
		c.unwatch()
	}
	if n := memory.Spilled(); n > 0 {
		c.diags.Add(trace.MemorySpilled.Of("", bytesText(n), bytesText(memory.Budget())))
	}
	return nil
}

// parseSize reads a number of bytes: "2GB", "800 MB", "1.5GiB", "1000000000".
func parseSize(text string) (int64, error) {
	text = strings.ToUpper(text)
	number := strings.TrimRight(text, "KMGTIB ")
	unit := strings.TrimSpace(text[len(number):])
	factor, ok := map[string]float64{"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0) || v*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("want a size such as 2GB or 800MB")
	}
	if size := int64(v * factor); size >= minMemory {
		return size, nil
	}
	return 0, fmt.Errorf("%s is the minimum", bytesText(minMemory))
}

// pick returns what chooses the requests that are read of large dumps, so that sel and byID,
// if it is not nil, can choose from them; nil if they choose by nothing that can be seen
// before reading. asRecorded tells that the window of time is on the clocks of the hosts.
func pick(sel *commandline.Selected, byID request.IDTest, asRecorded bool) *assembly.Pick {
	if byID == nil {
		byID = sel.Selection.ByID()
	}
	if byID != nil || sel.Window != (commandline.Window{}) {
		return &assembly.Pick{ByID: byID, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	if n := sel.Selection.OnlySlowest(); n > 0 {
		return &assembly.Pick{Slowest: n, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	return nil
}

// flagValues returns the values that a flag of a command takes behind some other flags, as far as
// they are known without an input.
func flagValues(command, flag string, behind []string) (values []string) {
	switch flag {
	case "format":
		for _, f := range table.Formats {
			values = append(values, string(f))
		}
		if command == "report" {
			values = append(values, string(table.FormatFolded))
		}
	case "fail-on", "mute":
		values = finders.Kinds()
	case "by":
		for _, d := range requests.Dimensions {
			values = append(values, d.Name)
		}
	case "metric":
		for _, m := range tail.Metrics {
			values = append(values, m.Name)
		}
	case "role":
		for role := request.Unified; role <= request.Other; role++ {
			values = append(values, role.String())
		}
	case "status":
		for status := request.Finished; status <= request.Unfinished; status++ {
			values = append(values, status.String())
		}
	case "cat":
		values = slices.Concat(reports.AllEvents, []string{"cpu_op", "python_function", "nvtx"})
	case "fail-if":
		for _, m := range gate.Metrics() {
			if !strings.Contains(m, ".NAME.") {
				values = append(values, m+">+5%")
			}
		}
	case "sort":
		if command == "requests" {
			values = requests.List(new(request.Set), nil).ColumnNames()
		} else if r := reports.Asked(behind); r != nil {
			values = r.Columns()
		}
	case "table":
		if r := reports.Asked(behind); command == "report" && r != nil {
			return r.Tables
		}
		values = map[string][]string{"report": reports.TableNames(), "inspect": inspect.Tables, "diff": {"diff", "diff.setup", "diff.load", "diff.percentiles", "diff.captures", "gate"}}[command]
	default:
		values = map[string][]string{
			"view": {"both", "thread", "request"}, "layout": {"both", "ranks", "compare"}, "args": {"all", "min", "none"},
			"tail": {"p90", "p95", "p99"}, "slowest": {"20:e2e", "20:ttft", "20:itl"}, "level": {"1", "2", "3"}, "classes": {"hta"}, "color": {"auto", "always", "never"},
		}[flag]
	}
	return values
}
