package commandline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Flags are on every command that reads requests.
func Flags() []cli.Flag {
	const category = "Selection:"
	list := func(name, usage string) cli.Flag {
		return &cli.StringSliceFlag{Name: name, Usage: usage, Category: category}
	}
	text := func(name, usage string) cli.Flag {
		return &cli.StringFlag{Name: name, Usage: usage, Category: category}
	}
	return []cli.Flag{
		list("rid", "requests with this `ID` (rid, full ID, or the start of one)"),
		list("room", "requests with this bootstrap `ROOM`, hex or decimal"),
		list("trace", "requests with this `TRACE` ID"),
		list("status", "requests with this `STATUS`: finished, aborted, failed, or unfinished"),
		text("slowest", "the `N[:ttft|e2e|itl]` slowest requests"),
		text("from", "include events that end after `TIME`: 20:53, 2026-08-17T20:53:20Z, +10s, -10m"),
		text("to", "include events that start before `TIME`"),
		&cli.Float64Flag{Name: "sample", Usage: "a sample of the requests, chosen by ID; `RATE` is between 0 and 1", DefaultText: "all", Category: category},
		list("role", "spans of servers with this `ROLE`: unified, prefill, decode, router, encoder"),
		list("host", "spans of this `HOST` (or the start of its name or ID)"),
		list("rank", "spans of this `RANK`: TP0, DP1, \"decode DP1 TP0\""),
		list("stage", "stages with this `NAME`"),
		text("min-dur", "spans that last at least `DURATION` (1ms, 250us)"),
		&cli.IntFlag{Name: "level", Usage: "stages up to this trace `LEVEL` (1, 2, 3)", DefaultText: "all", Category: category},
	}
}

// WindowFlags returns those of [Flags] that apply to profiles.
func WindowFlags() []cli.Flag {
	return slices.DeleteFunc(Flags(), func(f cli.Flag) bool {
		return !slices.Contains([]string{"from", "to", "host", "rank", "min-dur"}, f.Names()[0])
	})
}

// Selected is the selection made by the flags.
type Selected struct {
	Selection request.Selection // From and To are 0 until Resolve
	Window    Window            // of time
	rankWords []string          // Selection.Ranks as given
	zone      *time.Location
}

// Read reads [Flags]. Its errors are of type [UsageError].
func Read(ctx *cli.Context) (*Selected, error) {
	zone, err := Zone(ctx)
	if err != nil {
		return nil, err
	}
	s := &Selected{Window: Window{ctx.String("from"), ctx.String("to")}, zone: zone}
	if err := s.Window.Check(zone); err != nil {
		return nil, err
	}
	s.Selection.RIDs, s.Selection.Rooms, s.Selection.Traces = ctx.StringSlice("rid"), ctx.StringSlice("room"), ctx.StringSlice("trace")
	s.Selection.Hosts, s.rankWords, s.Selection.Stages = ctx.StringSlice("host"), ctx.StringSlice("rank"), ctx.StringSlice("stage")
	s.Selection.Sample, s.Selection.Level = ctx.Float64("sample"), ctx.Int("level")
	if ctx.IsSet("sample") && !(s.Selection.Sample > 0 && s.Selection.Sample <= 1) {
		return nil, Usage("--sample %v: want a share above 0 and up to 1", s.Selection.Sample)
	}
	if s.Selection.Level < 0 {
		return nil, Usage("--level %d: want 1 or more", s.Selection.Level)
	}
	for _, id := range s.Selection.Traces {
		if _, err := strconv.ParseUint(id[max(0, len(id)-16):], 16, 64); err != nil || len(id) > 32 {
			return nil, Usage("--trace %q: want up to 32 hex digits", id)
		}
	}
	for _, room := range s.Selection.Rooms {
		if !request.IsRoom(room) {
			return nil, Usage("--room %q: want a number, or 0x and hex digits", room)
		}
	}
	if err := s.readWords(ctx); err != nil {
		return nil, err
	}
	if text := ctx.String("min-dur"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, Usage("--min-dur %q: want a duration such as 1ms", text)
		}
		s.Selection.MinDur = int64(d)
	}
	if text := ctx.String("slowest"); text != "" {
		n, by, _ := strings.Cut(text, ":")
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || by != "" && by != "ttft" && by != "e2e" && by != "itl" {
			return nil, Usage("--slowest %q: want N, N:ttft, N:e2e, or N:itl", text)
		}
		s.Selection.Slowest, s.Selection.SlowestBy = count, by
	}
	return s, nil
}

// readWords reads the flags whose values are words: statuses, roles, and ranks.
func (s *Selected) readWords(ctx *cli.Context) error {
	for _, word := range ctx.StringSlice("status") {
		status, ok := request.ParseStatus(word)
		if !ok {
			return Usage("--status %q%s want finished, aborted, failed, or unfinished%s", word, cmp.Or(similar.Hint(word, statusWords), ":"), onceForEach("status", word))
		}
		s.Selection.Statuses = append(s.Selection.Statuses, status)
	}
	for _, word := range ctx.StringSlice("role") {
		role, ok := request.ParseRole(word)
		if !ok {
			return Usage("--role %q%s want unified, prefill, decode, router, sender, encoder, or other%s", word, cmp.Or(similar.Hint(word, roleWords), ":"), onceForEach("role", word))
		}
		s.Selection.Roles = append(s.Selection.Roles, role)
	}
	for _, word := range s.rankWords {
		rank, err := naming.Parse(word)
		if err != nil {
			return Usage("--%v%s", err, onceForEach("rank", word))
		}
		s.Selection.Ranks = append(s.Selection.Ranks, rank)
	}
	return nil
}

// Values of --status and --role.
var (
	statusWords = []string{"finished", "aborted", "failed", "unfinished"}
	roleWords   = []string{"unified", "prefill", "decode", "router", "sender", "encoder", "other"}
)

// onceForEach returns a hint to repeat the flag if a value has commas.
func onceForEach(flag, word string) string {
	if strings.Contains(word, ",") {
		return fmt.Sprintf("; give --%s once for each", flag)
	}
	return ""
}

// Bounds returns the window of time as instants, for an input with the given first and last event.
func (s *Selected) Bounds(first, last trace.Time) (from, to trace.Time, err error) {
	return s.Window.Resolve(first, last, s.zone)
}

// Resolve sets the window of time of the selection, for an input with the given first and last event.
func (s *Selected) Resolve(first, last trace.Time) (err error) {
	s.Selection.From, s.Selection.To, err = s.Bounds(first, last)
	return err
}

// Args returns [Flags] as given, preceded by that of [ZoneFlag], on which their times depend.
func Args(ctx *cli.Context) (args []string) {
	if ctx.IsSet("tz") {
		args = append(args, "--tz", ctx.String("tz"))
	}
	set := ctx.LocalFlagNames() // IsSet searches all flags each time
	for _, flag := range Flags() {
		name := flag.Names()[0]
		if !slices.Contains(set, name) {
			continue
		}
		if values := ctx.StringSlice(name); len(values) > 0 {
			for _, v := range values {
				args = append(args, "--"+name, v)
			}
			continue
		}
		args = append(args, "--"+name, fmt.Sprint(ctx.Value(name)))
	}
	return args
}
