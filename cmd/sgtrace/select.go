package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// selectionFlags are on every command that reads requests.
func selectionFlags() []cli.Flag {
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
		list("status", "requests that ended so: finished, aborted, failed, or unfinished (`STATUS`)"),
		text("slowest", "the `N[:ttft|e2e|itl]` slowest requests"),
		text("from", "include events that end after `TIME` (2026-08-17T20:53:20Z, 20:53:20, +10s)"),
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

// windowFlags are those of the selection flags that apply to what profilers record.
func windowFlags() []cli.Flag {
	return slices.DeleteFunc(selectionFlags(), func(f cli.Flag) bool {
		return !slices.Contains([]string{"from", "to", "host", "rank", "min-dur"}, f.Names()[0])
	})
}

// chosen is a Selection whose times may still be relative to the input.
type chosen struct {
	request.Selection
	from, to  string
	rankWords []string // Selection.Ranks, as they were given
}

// selection reads the selection flags.
func selection(ctx *cli.Context) (*chosen, error) {
	s := &chosen{from: ctx.String("from"), to: ctx.String("to")}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.RIDs, s.Rooms, s.Traces = ctx.StringSlice("rid"), ctx.StringSlice("room"), ctx.StringSlice("trace")
	s.Hosts, s.rankWords, s.Stages = ctx.StringSlice("host"), ctx.StringSlice("rank"), ctx.StringSlice("stage")
	s.Sample, s.Level = ctx.Float64("sample"), ctx.Int("level")
	if ctx.IsSet("sample") && !(s.Sample > 0 && s.Sample <= 1) {
		return nil, commandline.Usage("--sample %v: want a share above 0 and up to 1", s.Sample)
	}
	if s.Level < 0 {
		return nil, commandline.Usage("--level %d: want 1 or more", s.Level)
	}
	for _, id := range s.Traces {
		if _, err := strconv.ParseUint(id[max(0, len(id)-16):], 16, 64); err != nil || len(id) > 32 {
			return nil, commandline.Usage("--trace %q: want up to 32 hex digits", id)
		}
	}
	for _, room := range s.Rooms {
		if !request.IsRoom(room) {
			return nil, commandline.Usage("--room %q: want a number, or 0x and hex digits", room)
		}
	}
	if err := s.readWords(ctx); err != nil {
		return nil, err
	}
	if text := ctx.String("min-dur"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, commandline.Usage("--min-dur %q: want a duration such as 1ms", text)
		}
		s.MinDur = int64(d)
	}
	if text := ctx.String("slowest"); text != "" {
		n, by, _ := strings.Cut(text, ":")
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || by != "" && by != "ttft" && by != "e2e" && by != "itl" {
			return nil, commandline.Usage("--slowest %q: want N, N:ttft, N:e2e, or N:itl", text)
		}
		s.Slowest, s.SlowestBy = count, by
	}
	return s, nil
}

// readWords reads the flags whose values are words: statuses, roles, and ranks.
func (s *chosen) readWords(ctx *cli.Context) error {
	for _, word := range ctx.StringSlice("status") {
		status, ok := request.ParseStatus(word)
		if !ok {
			return commandline.Usage("--status %q: want finished, aborted, failed, or unfinished%s", word, onceForEach("status", word))
		}
		s.Statuses = append(s.Statuses, status)
	}
	for _, word := range ctx.StringSlice("role") {
		role, ok := request.ParseRole(word)
		if !ok {
			return commandline.Usage("--role %q: want unified, prefill, decode, router, sender, encoder, or other%s", word, onceForEach("role", word))
		}
		s.Roles = append(s.Roles, role)
	}
	for _, word := range s.rankWords {
		rank, err := naming.Parse(word)
		if err != nil {
			return commandline.Usage("--%v%s", err, onceForEach("rank", word))
		}
		s.Ranks = append(s.Ranks, rank)
	}
	return nil
}

// onceForEach tells what to do instead of a list with commas.
func onceForEach(flag, word string) string {
	if strings.Contains(word, ",") {
		return fmt.Sprintf("; give --%s once for each", flag)
	}
	return ""
}

// check finds mistakes in --from and --to before anything is read.
func (s *chosen) check() error {
	// Where the first of these stands tells the forms of times apart.
	form := func(text string) int { return strings.IndexAny(text, "+T:") }
	if s.from != "" && s.to != "" && form(s.from) == form(s.to) {
		probe := chosen{from: s.from, to: s.to}
		return probe.resolve(1)
	}
	_, err := instant("--from", s.from, 1)
	if err == nil {
		_, err = instant("--to", s.to, 1)
	}
	return err
}

// resolve turns --from and --to into instants of the input, whose first is given.
func (s *chosen) resolve(first trace.Time) (err error) {
	if s.From, err = instant("--from", s.from, first); err != nil {
		return err
	}
	if s.To, err = instant("--to", s.to, first); err != nil {
		return err
	}
	if s.From != 0 && s.To != 0 && s.From > s.To {
		return commandline.Usage("--from %s is after --to %s", s.from, s.to)
	}
	return nil
}

// instant reads a time: RFC 3339, a time of day (UTC) on the day of the first
// event, Unix seconds, or an offset from the first event such as +10s.
func instant(flag, text string, first trace.Time) (trace.Time, error) {
	if text == "" {
		return 0, nil
	}
	start := time.Unix(0, int64(first)).UTC()
	at, ok := unixSeconds(text)
	if rest, plus := strings.CutPrefix(text, "+"); plus {
		var d time.Duration
		d, err := time.ParseDuration(rest)
		at, ok = start.Add(d), err == nil
	} else if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		at, ok = t, true
	} else if t, err := time.Parse("15:04:05.999999999", text); err == nil {
		at, ok = start.Truncate(24*time.Hour).Add(t.Sub(t.Truncate(24*time.Hour))), true
	}
	if ns := at.UnixNano(); ok && time.Unix(0, ns).Equal(at) { // a Time reaches from 1678 to 2262
		return trace.Time(ns), nil
	}
	return 0, commandline.Usage("%s %q: want 2026-08-17T20:53:20Z, 20:53:20, Unix seconds, or +10s", flag, text)
}

// unixSeconds reads seconds since 1970, with a fraction of up to nine digits.
func unixSeconds(text string) (at time.Time, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseUint(whole, 10, 34) // more are milliseconds, which are not meant
	ns, err2 := strconv.ParseUint((fraction + "000000000")[:max(9, len(fraction))], 10, 30)
	return time.Unix(int64(sec), int64(ns)), err == nil && err2 == nil
}

// selectionArgs are the selection flags as they were given.
func selectionArgs(ctx *cli.Context) (args []string) {
	for _, flag := range selectionFlags() {
		name := flag.Names()[0]
		if !ctx.IsSet(name) {
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
