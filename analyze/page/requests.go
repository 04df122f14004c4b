package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/critical"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// slowest is the number of slowest requests with waterfalls on the page, besides those that findings name.
const slowest = 50

// A RequestList lists requests, each with a waterfall that a click opens.
type RequestList struct {
	List []RequestView
}

// A RequestView is a request as the page shows it.
type RequestView struct {
	Anchor   string
	RID      string
	Status   string
	E2E      string
	TTFT     string
	Arrived  string
	Why      string // why it is listed, and what made it slow
	From, To trace.Time
	Commands []string
	Notes    []string
	Fall     chart.Waterfall
	Open     bool // from the start
}

// Waterfalls makes the section of the slowest requests and those that findings name. t, which may be nil, explains
// what made them slow.
func Waterfalls(set *request.Set, run *replay.Run, found []finding.Finding, t *tail.Tail, src Source) Section {
	s := Section{ID: "requests", Title: "Requests"}
	causes := mainCauses(t)
	list := &RequestList{}
	for _, c := range chooseRequests(set, found) {
		list.List = append(list.List, newRequestView(set, run, c, causes[c.index], src))
	}
	if len(list.List) == 0 {
		s.Lead = "No request has a known end."
		return s
	}
	s.Lead = fmt.Sprintf("The %d slowest requests, and those that findings name. Click one to see its stages on every rank.", min(slowest, len(list.List)))
	f := &Figure{ID: "waterfalls", Title: "Waterfalls", Shows: []finding.Kind{finding.Errors}, Command: src.Of("requests", "--sort", "-e2e"), Defined: "One request", Body: list}
	all := len(list.List)
	if list.List = fitting(list.List); len(list.List) < all {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d requests are drawn, to keep the page small: the %d slowest and those that findings name come first", len(list.List), all, firstFalls))
	}
	s.Figures = []*Figure{f}
	return s
}

// Waterfalls of requests over very many ranks are long. maxFallRows limits their rows on a page in total; firstFalls
// is the number of slowest requests that get theirs before those that findings name.
const (
	maxFallRows = 2400
	firstFalls  = 20
)

// fitting returns the requests whose waterfalls fit on the page, in list order. Room goes to the first firstFalls
// requests, then to those that findings name (from index slowest on), then to the others.
func fitting(list []RequestView) []RequestView {
	drawn := make([]bool, len(list))
	room := maxFallRows
	draw := func(from, to int) {
		for i := min(from, len(list)); i < min(to, len(list)); i++ {
			room -= list[i].Fall.Rows()
			drawn[i] = room >= 0
		}
	}
	draw(0, firstFalls)
	draw(slowest, len(list))
	draw(firstFalls, slowest)
	var out []RequestView
	for i := range list {
		if drawn[i] {
			out = append(out, list[i])
		}
	}
	return out
}

// OneRequest makes the page of one request, or of several with the same ID. found are indexes into Set.Requests.
func OneRequest(set *request.Set, found []int, id string, inputs []string, made Provenance) Page {
	src := Source{Inputs: inputs}
	p := Page{Title: "Request " + id, Provenance: made}
	list := &RequestList{}
	var falls []*requests.Waterfall
	run := replay.Read(set)
	for _, i := range found {
		v := newRequestView(set, run, chosenRequest{index: i}, "", src)
		v.Open = true
		list.List = append(list.List, v)
		falls = append(falls, requests.NewWaterfall(set, i))
	}
	if len(found) == 1 {
		p.Tiles, p.Subtitle = requestTiles(&set.Requests[found[0]]), startedAt(&set.Requests[found[0]])
	}
	stages := TableOf(requests.WaterfallTable(falls), 0, "One request", src.requestCommand(id))
	stages.Title = "Stages"
	p.Sections = []Section{{ID: "requests", Title: "Waterfall", Figures: []*Figure{
		{ID: "waterfalls", Defined: "One request", Body: list}, // the list has the commands
	}}, {ID: "stages", Title: "Stages", Figures: []*Figure{stages}}}
	return p
}

// requestTiles returns the tiles of one request.
func requestTiles(r *request.Request) []Tile {
	status := Tile{Name: "Status", Value: r.Status.String(), State: Good}
	if r.Status != request.Finished {
		status.State = Bad
	}
	list := []Tile{status}
	for _, m := range []struct {
		name string
		ns   int64
	}{{"TTFT", r.Metrics.TTFT}, {"TPOT", r.Metrics.TPOT}, {"E2E", r.Metrics.E2E}, {"Queue", r.Metrics.Queue}} {
		if m.ns >= 0 {
			list = append(list, Tile{Name: m.name, Value: words.Nearly(m.ns), State: Neutral})
		}
	}
	if n := r.Metrics.CompletionTokens; n >= 0 {
		list = append(list, Tile{Name: "Tokens", Value: words.Thousands(n), Detail: "generated", State: Neutral})
	}
	return list
}

// startedAt says when a request started.
func startedAt(r *request.Request) string {
	return words.Clock(r.Start).Format(words.DateLayout) + " " + words.ZoneAt(r.Start)
}

// A chosenRequest is a request to show, and why.
type chosenRequest struct {
	index int // into Set.Requests
	why   []string
}

// chooseRequests returns the slowest requests, slowest first, followed by the others that findings name.
func chooseRequests(set *request.Set, found []finding.Finding) []chosenRequest {
	var slow []int
	for i := range set.AllRequests() {
		if set.Requests[i].Metrics.E2E >= 0 && set.Requests[i].Status == request.Finished {
			slow = append(slow, i)
		}
	}
	slices.SortStableFunc(slow, func(a, b int) int {
		return cmp.Compare(set.Requests[b].Metrics.E2E, set.Requests[a].Metrics.E2E)
	})
	var chosen order.Groups[int, chosenRequest] // by index
	for k, i := range slow[:min(slowest, len(slow))] {
		*chosen.Of(i) = chosenRequest{i, []string{"slowest by E2E: " + strconv.Itoa(k+1)}}
	}
	byRID := map[string]int{} // RIDs that findings name, to the first request with each
	for f := range found {
		for _, rid := range found[f].Affected.RIDs {
			byRID[rid] = request.None
		}
	}
	for i := range set.AllRequests() {
		rid := set.Text(set.Requests[i].RID)
		if before, named := byRID[rid]; named && before == request.None {
			byRID[rid] = i
		}
	}
	for f := range found {
		for _, rid := range found[f].Affected.RIDs {
			if i := byRID[rid]; i != request.None {
				c := chosen.Of(i)
				c.index, c.why = i, append(c.why, fmt.Sprintf("finding %d", f+1))
			}
		}
	}
	return chosen.List
}

// mainCauses returns the main cause of each slower-than-usual request, by request index; nil if t is nil.
func mainCauses(t *tail.Tail) map[int]string {
	if t == nil {
		return nil
	}
	causes := map[int]string{}
	for _, c := range t.Comparisons {
		if c.Metric != metric.E2E {
			continue
		}
		for _, p := range t.Points(c) {
			if p.Value > c.Around.To {
				causes[p.Request] = p.Cause.String()
			}
		}
	}
	return causes
}

func newRequestView(set *request.Set, run *replay.Run, c chosenRequest, cause string, src Source) RequestView {
	r := &set.Requests[c.index]
	w := requests.NewWaterfall(set, c.index)
	v := RequestView{
		Anchor: anchorOf(set.Text(r.RID), c.index), RID: set.Text(r.RID), Status: r.Status.String(), E2E: durationOrDash(r.Metrics.E2E), TTFT: durationOrDash(r.Metrics.TTFT),
		Arrived: words.At(r.Start, words.ClockLayout), From: w.From, To: w.To,
		Commands: []string{src.requestCommand(set.Text(r.RID)), src.aroundCommand(set.Text(r.RID))},
		Notes:    w.ClockNotes, Fall: waterfallOf(w),
	}
	if path := critical.ChainOf(run, nil, c.index); path != nil {
		v.Fall.Lanes = slices.Insert(v.Fall.Lanes, 0, laneOf(path))
	}
	if cause != "" {
		c.why = append([]string{cause}, c.why...)
	}
	v.Why = strings.Join(c.why, " · ")
	return v
}

// durationOrDash formats a duration; "-" if unknown.
func durationOrDash(ns int64) string {
	if ns < 0 {
		return "-"
	}
	return durationText(ns)
}

// plainRID matches IDs that can be used as anchors unchanged.
var plainRID = lazyregexp.New(`^[\w.:-]{1,128}$`)

// anchorOf returns the anchor of the request at an index. The script also finds requests by ID.
func anchorOf(rid string, index int) string {
	if plainRID.MatchString(rid) {
		return "r-" + rid
	}
	return "r-" + strconv.Itoa(index+1)
}

// phaseColors are the colors of the phases that stages belong to.
var phaseColors = [...]int{
	request.OtherPhase: chart.Gray, request.RoutePhase: 9, request.DispatchPhase: 6, request.QueuePhase: 4,
	request.BootstrapPhase: 3, request.PrefillPhase: 0, request.TransferPhase: 1, request.DecodePhase: 2,
}

// waterfallOf converts a waterfall, coloring the stages by phase.
func waterfallOf(w *requests.Waterfall) chart.Waterfall {
	out := chart.Waterfall{Zero: w.Request.Start, From: w.From, To: w.To}
	for i := range w.Lanes {
		from := &w.Lanes[i]
		host := from.Host
		if host == "?" {
			host = ""
		}
		lane := chart.Lane{Name: words.JoinNonEmpty(" · ", from.Name, host, from.Reason)}
		for k := range from.Rows {
			row := &from.Rows[k]
			r := chart.WaterfallRow{Name: row.Name, Depth: row.Depth, Color: phaseColors[row.Phase], Text: durationText(row.Steps.Total)}
			if n := len(row.Spans); n > 1 {
				r.Name = fmt.Sprintf("%s ×%d", row.Name, n)
			}
			for _, iv := range row.Spans {
				r.Spans = append(r.Spans, chart.Span{From: iv.From, To: iv.To})
			}
			lane.Rows = append(lane.Rows, r)
		}
		out.Lanes = append(out.Lanes, lane)
	}
	return out
}

// phaseOfWhy is the phase whose color a piece of a critical path takes.
var phaseOfWhy = map[replay.WaitReason]request.Phase{
	replay.Dispatching: request.DispatchPhase, replay.Booking: request.BootstrapPhase, replay.Queueing: request.QueuePhase, replay.Prefilling: request.PrefillPhase,
	replay.Transferring: request.TransferPhase, replay.Joining: request.QueuePhase, replay.Decoding: request.DecodePhase, replay.HeldUp: request.PrefillPhase,
	replay.LateRank: request.OtherPhase, replay.Returning: request.RoutePhase,
}

// laneOf returns the critical path of a request as the lane above those of its threads: a row for each reason to wait
// on each rank. The bars follow one another and add up to E2E.
func laneOf(path *critical.Chain) chart.Lane {
	lane := chart.Lane{Name: "Critical path"}
	var rows order.Groups[string, chart.WaterfallRow]
	sums := map[string]int64{}
	for i := range path.Pieces {
		p := &path.Pieces[i]
		name := words.JoinNonEmpty(" · ", p.Why.String(), p.Rank)
		sums[name] += p.Ns
		row := rows.Of(name)
		row.Name, row.Color, row.Text = name, phaseColors[phaseOfWhy[p.Why]], durationText(sums[name])
		row.Spans = append(row.Spans, chart.Span{From: p.First, To: p.Until})
	}
	lane.Rows = rows.List
	return lane
}

func (l *RequestList) Draw() (chart.Drawing, error) {
	d := chart.Drawing{Wide: true}
	for phase, color := range phaseColors {
		d.Legend = append(d.Legend, chart.Part{Name: request.Phase(phase).String(), Color: color}.Entry())
	}
	var b bytes.Buffer
	if err := requestsTemplate().Execute(&b, l.List); err != nil {
		return d, err
	}
	d.Markup = template.HTML(b.String()) // escaped by the template
	return d, nil
}

// SVG returns the waterfall of the request.
func (v *RequestView) SVG() template.HTML {
	return template.HTML(v.Fall.SVG("waterfall of request " + v.RID)) // of escaped parts only
}

// Since and Until are the request's time bounds, for the script.
func (v *RequestView) Since() string { return chart.Milliseconds(v.From) }
func (v *RequestView) Until() string { return chart.Milliseconds(v.To) }

var requestsTemplate = parsed("requests", functions, `<p class="request-head" aria-hidden="true"><span>request</span><span>arrived</span><span>E2E</span><span>TTFT</span><span>status</span><span>why it is here</span></p>
{{- range .}}
<details class="request"{{if .Open}} open{{end}} id="{{.Anchor}}" data-rid="{{printable .RID}}" data-t="{{.Since}}"><summary><code>{{printable .RID}}</code><span>{{.Arrived}}</span><span>{{.E2E}}</span><span>{{.TTFT}}</span><span>{{.Status}}</span><span>{{printable .Why}}</span></summary>
<div class="fall">{{.SVG}}</div>
{{- with .Notes}}<ul class="notes">{{range .}}<li>{{printable .}}</li>{{end}}</ul>{{end}}
<p class="source">{{range .Commands}}<code class="command">{{printable .}}</code>{{end}}<button type="button" class="zoom-request script" data-from="{{.Since}}" data-to="{{.Until}}" hidden>zoom the charts to its time</button></p></details>
{{- end}}`)
