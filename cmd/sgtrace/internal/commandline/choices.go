package commandline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Choices lists the values that selection flags could have: what the requests hold before the selection.
type Choices struct {
	requests    int
	set         *request.Set
	stages      []string
	first, last trace.Time
}

// ChoicesOf collects the choices in requests, as far as sel selects by them.
func ChoicesOf(set *request.Set, sel *Selected) *Choices {
	o := &Choices{requests: len(set.Requests), set: set}
	o.first, o.last, _ = set.Bounds()
	seen := map[string]bool{}
	for i := range set.All() {
		if len(sel.Selection.Stages) > 0 && set.Kind(i) == request.Stage {
			seen[set.Name(i)] = true
		}
	}
	o.stages = slices.Sorted(maps.Keys(seen))
	return o
}

// Nothing says which flag selects nothing, and what its choices are.
func (o *Choices) Nothing(ctx *cli.Context, sel *Selected) error {
	for _, check := range []func(*Selected) error{o.noTime, o.noRole, o.noHost, o.noRank, o.noStage} {
		if err := check(sel); err != nil {
			return err
		}
	}
	return fmt.Errorf("none of %d requests match %s; 'sgtrace inspect' shows hosts, ranks, and times",
		o.requests, strings.Join(Args(ctx), " "))
}

func (o *Choices) noTime(sel *Selected) error {
	if (sel.Selection.From == 0 || sel.Selection.From <= o.last) && (sel.Selection.To == 0 || sel.Selection.To >= o.first) {
		return nil
	}
	return fmt.Errorf("--from and --to select nothing: the requests %s", words.Were(o.first, o.last))
}

func (o *Choices) noRole(sel *Selected) error {
	return o.none("--role", len(sel.Selection.Roles),
		func(i, proc int) bool { return sel.Selection.Roles[i] == o.set.Procs[proc].Role },
		func(i int) string { return sel.Selection.Roles[i].String() },
		func(proc int) string { return o.set.Procs[proc].Role.String() })
}

func (o *Choices) noHost(sel *Selected) error {
	return o.none("--host", len(sel.Selection.Hosts),
		func(i, proc int) bool { return o.set.IsOnHost(proc, sel.Selection.Hosts[i]) },
		func(i int) string { return sel.Selection.Hosts[i] },
		func(proc int) string { return strings.TrimPrefix(o.set.HostOf(proc), naming.Unknown) })
}

func (o *Choices) noRank(sel *Selected) error {
	return o.none("--rank", len(sel.Selection.Ranks),
		func(i, proc int) bool { return o.set.IsRank(proc, sel.Selection.Ranks[i]) },
		func(i int) string { return words.QuoteShell(sel.rankWords[i : i+1]) },
		func(proc int) string {
			if o.set.Procs[proc].Rank == trace.NoRank {
				return ""
			}
			return o.set.RankName(proc)
		})
}

// none returns an error if a flag has n values, but no process matches any of them.
func (o *Choices) none(flag string, n int, has func(i, proc int) bool, value func(i int) string, name func(proc int) string) error {
	var given, names []string
	for i := range n {
		for proc := range o.set.Procs {
			if has(i, proc) {
				return nil
			}
		}
		given = append(given, flag+" "+value(i))
	}
	if n == 0 {
		return nil
	}
	for proc := range o.set.Procs {
		if text := name(proc); text != "" && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return fmt.Errorf("no %s; there are %s", strings.Join(given, ", "), cmp.Or(words.Some(names, 20), "none"))
}

func (o *Choices) noStage(sel *Selected) error {
	if len(sel.Selection.Stages) == 0 || slices.ContainsFunc(sel.Selection.Stages, func(name string) bool { return slices.Contains(o.stages, name) }) {
		return nil
	}
	word := sel.Selection.Stages[0]
	return fmt.Errorf("no --stage %s%s (there are %s)", word, similar.Hint(word, o.stages), cmp.Or(words.Some(o.stages, 20), "none"))
}

// ZoneFlag chooses the time zone of printed times, and of times given without a zone.
func ZoneFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "tz", Category: category, DefaultText: "UTC",
		Usage: "times are in `ZONE`, such as Europe/Berlin, +02:00, or local, in text, pages, and --from and --to; CSV and JSON stay in UTC"}
}

// Zone reads [ZoneFlag]. Its errors are of type [UsageError].
func Zone(ctx *cli.Context) (*time.Location, error) {
	text := ctx.String("tz")
	switch text {
	case "", "Z":
		return time.UTC, nil
	case "local":
		return time.Local, nil
	}
	for _, layout := range [...]string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone(text, seconds), nil
		}
	}
	zone, err := time.LoadLocation(text)
	if err != nil {
		return nil, Usage("--tz %q: want a name such as Europe/Berlin, an offset such as +02:00, or local", text)
	}
	return zone, nil
}
