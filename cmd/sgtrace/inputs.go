package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/pick"
)

// readsInputs gives a command that reads recorded inputs the flags shared by all such commands, and their
// setup and cleanup.
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

// findInputs finds the inputs that arguments name, except those of --exclude.
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

// readsStdin lists the commands that read standard input if no input is named, with the number of arguments
// before the inputs.
var readsStdin = map[string]int{"report": 0, "requests": 0, "request": 1, "live": 0, "inspect": 0, "extract": 0, "whatif": 0}

// withStdin adds standard input to a command line without inputs, if it is a file or a pipe with content,
// not a terminal.
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
	late := time.AfterFunc(time.Second, say) // says why it waits if nobody writes to the pipe
	in := bufio.NewReader(f)
	_, err := in.Peek(1)
	late.Stop()
	if c.in = in; err != nil {
		return args
	}
	say()
	return append(slices.Clone(args), inputs.Stdin)
}

// exclusionArgs returns the --exclude flags as given.
func (c *command) exclusionArgs(ctx *cli.Context) (args []string) {
	for _, glob := range ctx.StringSlice("exclude") {
		args = append(args, "--exclude", c.redactedInput(glob))
	}
	return args
}

// shortInputs replaces many files by their directory if it holds nothing else: an expanded glob would fill
// the screen.
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
	only     *inputs.Format // other formats are errors; nil accepts all
	oneClock bool           // put the hosts on one clock if their clocks differ
	byID     request.IDTest // the requests that are needed; nil is all selected ones
}

// loadFiles reads files, applies the selection flags, and redacts.
func (c *command) loadFiles(ctx *cli.Context, files []inputs.Input, how loading) (*request.Set, error) {
	set, err := c.readFiles(ctx, files, how)
	if err == nil {
		c.redactRequests(set)
	}
	return set, err
}

// givenZone returns the time zone of logs without one; nil if the user gave none.
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
		Pick: wantedTraces(sel, how.byID, !how.oneClock)}
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

// size returns the total size of files in bytes; -1 is unknown.
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

// wantedTraces returns what chooses which requests to read from large dumps, such that sel and byID (if not nil)
// can choose from them. It returns nil if they choose by nothing that can be seen before reading.
// asRecorded says that the window of time is on the clocks of the hosts.
func wantedTraces(sel *commandline.Selected, byID request.IDTest, asRecorded bool) *pick.Wanted {
	if byID == nil {
		byID = sel.Selection.ByID()
	}
	if byID != nil || sel.Window != (commandline.Window{}) {
		return &pick.Wanted{ByID: byID, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	if n := sel.Selection.OnlySlowest(); n > 0 {
		return &pick.Wanted{Slowest: n, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	return nil
}
