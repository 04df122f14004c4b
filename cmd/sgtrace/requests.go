package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/critical"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// maxRequests is how many requests text and Markdown list by default.
const maxRequests = 200

func (c *command) requestsCommand() *cli.Command {
	return &cli.Command{
		Name:      "requests",
		Usage:     "list requests with queue, prefill, decode, ITL, TTFT, E2E, status",
		ArgsUsage: "INPUT...",
		Description: `Text shows the first 200 requests. CSV and JSON have all, with more columns.

Examples:
  sgtrace requests otel_trace.json
  sgtrace requests --sort -ttft --limit 20 otel_trace.json
  sgtrace requests --follow otel_trace.json`,
		Flags: append([]cli.Flag{
			formatFlag("; mooncake is JSONL for simulators: arrivals and lengths"),
			&cli.StringFlag{Name: "sort", Usage: "sort by `COLUMN`; -COLUMN reverses the order"},
			&cli.IntFlag{Name: "limit", Usage: "print the first `N` requests; 0 is all", DefaultText: "200 for text and markdown, otherwise all"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep reading a growing dump, and print requests as they end", DisableDefaultText: true},
		}, commandline.Flags()...),
		Action: func(ctx *cli.Context) error {
			how, err := printing(ctx, maxRequests, requests.FormatMooncake)
			if err != nil {
				return err
			}
			if how.format == requests.FormatMooncake {
				return c.mooncake(ctx)
			}
			if ctx.Bool("follow") {
				return c.followRequests(ctx)
			}
			set, err := c.load(ctx, ctx.Args().Slice())
			if err != nil {
				return err
			}
			d := document.Of(requests.Requests(set))
			d.Schema = "sgtrace.requests/v2"
			return c.write(d, how)
		},
	}
}

// criticalPaths prints the critical paths of the requests with an ID. It reads all requests of the inputs,
// because they queue behind each other.
func (c *command) criticalPaths(ctx *cli.Context, how printed) error {
	e, _, err := c.readInputs(ctx, ctx.Args().Tail(), needed{events: profile.Filter{Cats: reports.HostEvents, Args: profile.ArgsNone},
		data: convert.ReportOptions{MatchCollectives: true}})
	if err != nil {
		return err
	}
	defer e.Close()
	set, id := e.Requests, ctx.Args().First()
	if set == nil {
		return errors.New("no input has requests")
	}
	all := requests.Find(set, id)
	if len(all) == 0 {
		return fmt.Errorf("no request has the ID %q%s ('sgtrace requests' lists them)", id, set.Similar(id))
	}
	run := replay.Read(set)
	hosts := critical.ReadHosts(run, &e.Profiles)
	d := &document.Document{Schema: "sgtrace.request/v2"}
	for i, r := range all[:min(len(all), maxWaterfalls)] {
		path := critical.PathOf(run, hosts, r)
		if path == nil {
			return fmt.Errorf("%s has no critical path: it did not finish, or spans of it are missing", set.Text(set.Requests[r].RID))
		}
		t := path.Report()
		if i > 0 {
			t.Part = set.Text(set.Requests[r].RID)
		}
		d.Add(t)
	}
	return c.write(d, how)
}

// mooncake prints arrivals and lengths for simulators.
func (c *command) mooncake(ctx *cli.Context) error {
	set, err := c.load(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	left, err := requests.WriteMooncake(c.out, set)
	if left > 0 {
		fmt.Fprintf(c.err, "%d requests are left out: the dump does not have their lengths\n", left)
	}
	return err
}

func (c *command) requestCommand() *cli.Command {
	return &cli.Command{
		Name:      "request",
		Usage:     "show one request as a waterfall: every stage on every rank",
		ArgsUsage: "RID INPUT...",
		Description: `RID is the ID of a request or of any of its parts, a bootstrap room, a trace ID,
or the start of one of these. If more than five requests match, text lists them.

Examples:
  sgtrace request 7ca07386 otel_trace.json
  sgtrace request 0x7c54428c6c5744bc 'dumps/*.zst'
  sgtrace request --format csv 7ca07386 otel_trace.json
  sgtrace request -o request.html 7ca07386 otel_trace.json`,
		Flags: append([]cli.Flag{formatFlag(), pageFlag(),
			&cli.BoolFlag{Name: "critical-path", Usage: "print what it waited for, one after another, across requests and ranks", DisableDefaultText: true}}, commandline.Flags()...),
		Action: c.request,
	}
}

// idAndInputs returns an error unless the arguments of 'sgtrace request' are an ID and files, in this
// order.
func idAndInputs(id string, files []string) error {
	_, err := os.Stat(id)
	switch isFile := err == nil; {
	case isFile && len(files) == 0:
		return commandline.Usage("the request ID is missing: sgtrace request ID %s; 'sgtrace requests %[1]s' lists them", id)
	case isFile:
		return commandline.Usage("%s is a file, but the request ID comes first: sgtrace request ID %[1]s", id)
	case len(files) == 0:
		return commandline.Usage("want a request ID and the inputs to look it up in: sgtrace request 7ca07386 otel_trace.json")
	}
	return nil
}

// maxWaterfalls is how many matching requests are shown one by one: several may share a trace or a room.
const maxWaterfalls = 5

// candidates lists the requests that match an ID.
func candidates(set *request.Set, found []int, id string) *document.Document {
	t := requests.List(set, found)
	t.Title = fmt.Sprintf("%d requests match %q", len(found), id)
	t.Limit(maxRequests)
	t.Note("give more of an ID to see one request, such as sgtrace request %s", set.Text(set.Requests[found[0]].RID))
	d := document.Of(t)
	d.Schema = "sgtrace.requests/v2"
	return d
}

func (c *command) request(ctx *cli.Context) error {
	how, err := printing(ctx, 0)
	if err != nil {
		return err
	}
	if err := reports.CheckPage(ctx); err != nil {
		return err
	}
	id, args := ctx.Args().First(), ctx.Args().Tail()
	if err := idAndInputs(id, args); err != nil {
		return err
	}
	if ctx.Bool("critical-path") {
		return c.criticalPaths(ctx, how)
	}
	files, err := findInputs(ctx, args)
	if err != nil {
		return err
	}
	set, err := c.readFiles(ctx, files, loading{byID: request.Beginning(id)})
	if err != nil {
		return err
	}
	found := requests.Find(set, id)
	if len(found) == 0 {
		return fmt.Errorf("no request has the ID %q%s ('sgtrace requests' lists them)", id, set.Similar(id))
	}
	c.redactRequests(set)
	if ctx.IsSet("o") {
		given := c.given(ctx, args)
		return c.writePage(ctx, files, given, []string{"request", id}, func(made page.Provenance) (page.Page, error) {
			return page.OneRequest(set, found, id, given, made), nil
		})
	}
	if len(found) > maxWaterfalls && how.format != table.FormatCSV && how.format != table.FormatJSON {
		return c.write(candidates(set, found, id), how)
	}
	list := order.Each(found, func(r int) *requests.Waterfall { return requests.NewWaterfall(set, r) })
	d := &document.Document{Schema: "sgtrace.request/v2"}
	d.AddMain(requests.WaterfallTable(list))
	d.Text = func(w io.Writer, style table.Style) error {
		for _, one := range list {
			if err := one.Write(w, style); err != nil {
				return err
			}
		}
		return nil
	}
	return c.write(d, how)
}
