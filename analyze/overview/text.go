package overview

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An overviewPrinter prints an overview as text.
type overviewPrinter struct {
	*Overview
	*Printer
}

func (o *Overview) writeText(w io.Writer, style table.Style) error {
	p := &overviewPrinter{o, NewPrinter(w, style)}
	const margin = 10 // columns before the text of a fact
	for _, f := range o.facts() {
		p.Filled(fmt.Sprintf("%-*s", margin, f.name), margin, f.text)
	}
	if len(o.Warnings) == 0 {
		p.Filled(fmt.Sprintf("%-*s", margin, "trust"), margin, p.trustText())
	}
	for i := range o.Warnings {
		name := ""
		if i == 0 {
			name = "trust"
		}
		if mark := warningMark(&o.Warnings[i]); mark != "" {
			p.Tone = table.Bad
		}
		p.Filled(fmt.Sprintf("%-*s", margin, name), margin, warningMark(&o.Warnings[i])+o.Warnings[i].Text)
		p.Tone = table.Plain
	}
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.shares(); err != nil {
		return err
	}
	p.printf("\n")
	p.list().Print(p.Printer)
	return p.Out.Flush()
}

func (p *overviewPrinter) latencies() error {
	if len(p.Latencies) == 0 {
		return nil
	}
	p.printf("\n")
	// Few rows need no rule.
	if err := latencyReport(p.UserLatencies()).WriteBare(p.Out, p.bare()); err != nil {
		return err
	}
	table.WriteNotes(p.Out, p.style, document.SampleNotes(p.Diags))
	return nil
}

// maxDevices is the number of devices shown if there are only profiles.
const maxDevices = 8

// maxKernels is the number of kernels shown if there are only profiles.
const maxKernels = 5

// shares prints where the time of devices went, those that idle longest first if there are too many to show all, and
// the kernels that take most of it.
func (p *overviewPrinter) shares() error {
	if p.Requests != nil || p.GPUs == nil || len(p.GPUs.GPUs) == 0 {
		return nil
	}
	p.printf("\n")
	r := p.profileReport()
	if n := len(p.GPUs.GPUs); n > maxDevices {
		_ = r.Sort("idle", true) // there is such a column
		r.Limit(maxDevices)
	}
	style := p.bare()
	if err := r.WriteBare(p.Out, style); err != nil {
		return err
	}
	kernels := p.kernelReport()
	if kernels.Len() == 0 {
		return nil
	}
	p.printf("\n")
	kernels.Limit(maxKernels)
	if err := kernels.WriteBare(p.Out, style); err != nil {
		return err
	}
	p.printf("$ %s\n", p.list().commandFor([]string{"--kernels"}))
	return nil
}

// writeMarkdown writes the overview as the draft of a post-mortem: a summary, a timeline, all findings with their
// evidence, and the commands that show more.
func (o *Overview) writeMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := o.markdownSummary(out); err != nil {
		return err
	}
	if events := o.events(); len(events) > 0 {
		fmt.Fprintf(out, "### Timeline\n\nTimes are in %s, from %s on.\n\n", words.ZoneAt(events[0].At), words.Clock(events[0].At).Format(time.DateOnly))
		for _, e := range events {
			fmt.Fprintf(out, "- **%s** %s\n", words.At(e.At, "15:04:05.0"), escaped(e.Text))
		}
		out.WriteByte('\n')
	}
	list := o.list()
	if err := out.Flush(); err != nil {
		return err
	}
	if err := list.Markdown(w); err != nil {
		return err
	}
	return list.markdownCommands(w, nil, []string{"-o", "report.html"})
}

// markdownSummary writes what was read, how far to trust it, and how the requests did.
func (o *Overview) markdownSummary(out *bufio.Writer) error {
	out.WriteString("### Summary\n\n")
	if len(o.Findings) > 0 {
		fmt.Fprintf(out, "%s. The one that costs most: %s (%s).\n\n", o.list().fullTitle(), escaped(o.Findings[0].Text), o.Findings[0].CostText())
	}
	for _, f := range o.facts() {
		fmt.Fprintf(out, "- **%s**: %s\n", f.name, escaped(f.text))
	}
	if len(o.Warnings) == 0 {
		fmt.Fprintf(out, "- **trust**: %s\n", o.trustText())
	}
	for i := range o.Warnings {
		fmt.Fprintf(out, "- **trust**: %s\n", escaped(warningMark(&o.Warnings[i])+o.Warnings[i].Text))
	}
	out.WriteByte('\n')
	if len(o.Latencies) == 0 {
		return nil
	}
	seen := latencyReport(o.UserLatencies())
	for _, note := range document.SampleNotes(o.Diags) {
		seen.Note("%s", note)
	}
	if err := seen.Write(out, table.FormatMarkdown, table.Style{}); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// A kernelTotal sums up all kernels of one name over all ranks.
type kernelTotal struct {
	name     string
	class    kernelname.Class
	total, n int64 // ns; number of kernels
}

// kernelTotals sums up kernels by name, the largest total first.
func kernelTotals(kernels []gpu.RankKernel) []kernelTotal {
	at := map[trace.Sym]int{}
	var list []kernelTotal
	for i := range kernels {
		k := &kernels[i]
		if _, ok := at[k.Sym]; !ok {
			at[k.Sym] = len(list)
			list = append(list, kernelTotal{name: k.Name, class: k.Class})
		}
		t := &list[at[k.Sym]]
		t.total, t.n = distribution.AddTimes(t.total, k.Summary.Total), t.n+int64(k.Summary.N)
	}
	slices.SortFunc(list, func(a, b kernelTotal) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(a.name, b.name))
	})
	return list
}

// kernelReport makes the table of kernels by total time.
func (o *Overview) kernelReport() *table.Table {
	type K = kernelTotal
	var list []K
	if o.GPUs != nil {
		list = kernelTotals(o.GPUs.Kernels)
	}
	all := distribution.SumTimes(order.EachRow(list, func(x *K) int64 { return x.total }))
	total := table.NsColumn("total", "sum over all ranks", func(k *K) int64 { return k.total })
	count := table.CountColumn("n", "number of kernels", func(k *K) int64 { return k.n })
	name := table.TextColumn("kernel", "name of the kernel", func(k *K) string { return k.name })
	name.Most = table.MaxName
	return table.New("sgtrace.report.summary.kernels/v1", "Kernels that take most", list, []table.Field[K]{
		table.PartColumn("of kernels", "share of the time of all kernels", func(k *K) (int64, int64) { return k.total, all }),
		total, count,
		table.TextColumn("class", "class: compute, communication, memory, other", func(k *K) string { return k.class.String() }),
		name,
	}).Leave("n")
}

// A Server is all ranks of one role, and the hosts that they run on.
type Server struct {
	Role  request.Role
	Hosts []string // as reports print them
	Ranks int
	Size  string // number of ranks in each direction, such as "TP2 DP2"; "" is unknown
	// Missing names the ranks below the highest number in each direction that did nothing, such as "TP2".
	Missing []string
}

// serversOf groups ranks by role, in the order of display, with the gateway first if there is one.
func serversOf(r *place.RankSet) []Server {
	var out []Server
	for places := range order.Runs(r.Places, func(a, b *place.Location) bool { return a.Role == b.Role }) {
		out = append(out, serverOf(places))
	}
	if slices.ContainsFunc(r.Set.Requests, func(r request.Request) bool { return r.Gateway != request.None }) {
		out = slices.Insert(out, 0, Server{Role: request.Router, Ranks: request.Unknown})
	}
	return out
}

// serverOf sums up ranks of one role.
func serverOf(ranks []place.Location) Server {
	server := Server{Role: ranks[0].Role, Ranks: len(ranks)}
	var parts [4][]int16
	seen := map[string]bool{}
	for i := range ranks {
		p := &ranks[i]
		if on := p.ServerName(); !seen[on] {
			seen[on] = true
			server.Hosts = append(server.Hosts, on)
		}
		for k, n := range [...]int16{p.Rank.TP, p.Rank.PP, p.Rank.DP, p.Rank.EP} {
			if n >= 0 && !slices.Contains(parts[k], n) {
				parts[k] = append(parts[k], n)
			}
		}
	}
	var sizes []string
	for k, name := range [...]string{"TP", "PP", "DP", "EP"} {
		if len(parts[k]) == 0 {
			continue
		}
		n := slices.Max(parts[k]) + 1
		if n > 1 || name == "TP" {
			sizes = append(sizes, fmt.Sprintf("%s%d", name, n))
		}
		for rank := range n {
			if !slices.Contains(parts[k], rank) {
				server.Missing = append(server.Missing, fmt.Sprintf("%s%d", name, rank))
			}
		}
	}
	server.Size = strings.Join(sizes, " ")
	return server
}

// String describes a server in a few words: "decode TP2 DP2 on c94b1e02".
func (s *Server) String() string {
	if s.Role == request.Router {
		return "gateway"
	}
	const few = 3
	hosts := strings.Join(s.Hosts[:min(few, len(s.Hosts))], ", ")
	if n := len(s.Hosts); n > few {
		hosts = fmt.Sprintf("%d hosts", n)
	}
	text := words.JoinNonEmpty(" ", s.Role.String(), s.Size)
	if hosts != "" && hosts != "?" {
		text += " on " + hosts
	}
	return text
}
