package finding

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Object is a finding in JSON. Fields are only ever added; docs/METRICS.md defines them.
// Unknown values are null, points in time are Unix ns.
type Object struct {
	ID         table.JSONText     `json:"id"`
	Kind       table.JSONText     `json:"kind"`
	Severity   table.JSONText     `json:"severity"`
	Confidence table.JSONText     `json:"confidence"`
	Text       table.JSONText     `json:"text"`
	Place      placeObject        `json:"place"`
	Since      *int64             `json:"since_unix_ns"`
	Until      *int64             `json:"until_unix_ns"`
	Metric     *metricObject      `json:"metric"`
	P          *float64           `json:"p"`
	Cost       float64            `json:"cost"`
	CostBasis  table.JSONText     `json:"cost_of"`
	Affected   *affectedObject    `json:"affected"`
	Evidence   []evidenceObject   `json:"evidence"`
	Commands   [][]table.JSONText `json:"commands"`
	// Only present if asked for; Without is null if unknown, for the reason in NoWithout.
	Without   []withoutObject  `json:"without,omitempty"`
	Assumed   []table.JSONText `json:"without_assumes,omitempty"`
	NoWithout table.JSONText   `json:"without_unknown,omitempty"`
}

type (
	withoutObject struct {
		Metric  string   `json:"metric"`
		Unit    string   `json:"unit"`
		Actual  *float64 `json:"actual"`
		Without *float64 `json:"without"`
		Low     *float64 `json:"low"`
		High    *float64 `json:"high"`
	}
	placeObject struct {
		Scope  table.JSONText `json:"scope"`
		Role   table.JSONText `json:"role"`
		Host   table.JSONText `json:"host"`
		Server *int           `json:"server"`
		Label  table.JSONText `json:"label"`
		Name   table.JSONText `json:"name"`
		Rank   table.JSONText `json:"rank"`
	}
	metricObject struct {
		Name   table.JSONText `json:"name"`
		Unit   string         `json:"unit"`
		Before *float64       `json:"before"`
		After  *float64       `json:"after"`
	}
	affectedObject struct {
		N    int              `json:"requests"`
		RIDs []table.JSONText `json:"rids"`
	}
	evidenceObject struct {
		Text   table.JSONText `json:"text"`
		Table  table.JSONText `json:"table"`
		Row    []keyObject    `json:"row"`
		Column table.JSONText `json:"column"`
		Value  *float64       `json:"value"`
	}
	keyObject struct {
		Column table.JSONText `json:"column"`
		Text   table.JSONText `json:"text"`
	}
)

// Object returns f for JSON. again are the arguments that select and read the same input once more: "--from", "+10s", "dumps/".
func (f *Finding) Object(again []string) Object {
	v := Object{
		ID: table.JSONText(f.ID()), Kind: table.JSONText(f.Kind), Severity: table.JSONText(f.Severity), Confidence: table.JSONText(f.Confidence),
		Text: table.JSONText(f.Text), Place: newPlaceObject(&f.At), Since: timeOrNil(f.Since), Until: timeOrNil(f.Until),
		Cost: math.Round(f.Cost*1e6) / 1e6, CostBasis: table.JSONText(f.CostBasis), Evidence: []evidenceObject{}, Commands: [][]table.JSONText{},
	}
	if f.Metric.Name != "" {
		v.Metric = &metricObject{table.JSONText(f.Metric.Name), f.Metric.UnitName(), number(f.Metric.Before), number(f.Metric.After)}
	}
	if f.P.Known {
		v.P = number(f.P.P)
	}
	if f.Affected.N > 0 {
		v.Affected = &affectedObject{f.Affected.N, table.JSONTexts(f.Affected.RIDs)}
	}
	for i := range f.Evidence {
		v.Evidence = append(v.Evidence, f.Evidence[i].object())
	}
	for i := range f.Without {
		w := &f.Without[i]
		v.Without = append(v.Without, withoutObject{w.Metric, w.Unit.String(), number(w.Actual), number(w.Without), number(w.Low), number(w.High)})
	}
	v.Assumed, v.NoWithout = table.JSONTexts(f.Assumed), table.JSONText(f.NoWithout)
	for _, args := range f.commands(again) {
		v.Commands = append(v.Commands, table.JSONTexts(args))
	}
	return v
}

func (e *Evidence) object() evidenceObject {
	v := evidenceObject{Text: table.JSONText(e.Text), Table: table.JSONText(e.Table), Row: []keyObject{}, Column: table.JSONText(e.Column)}
	if e.Table != "" {
		v.Value = number(e.Value)
	}
	for _, key := range e.Row {
		v.Row = append(v.Row, keyObject{table.JSONText(key.Column), table.JSONText(key.Text)})
	}
	return v
}

func newPlaceObject(p *place.Location) placeObject {
	v := placeObject{Scope: table.JSONText(p.Scope.String())}
	if p.Scope == place.Everywhere {
		return v
	}
	if p.Role != request.Other {
		v.Role = table.JSONText(p.Role.String())
	}
	v.Name = table.JSONText(p.String())
	if p.Scope == place.OneRank {
		v.Host, v.Label = table.JSONText(p.Host), table.JSONText(p.Label)
		if p.Server > 0 {
			v.Server = &p.Server
		}
		v.Rank = table.JSONText(p.RankName())
	}
	return v
}

// timeOrNil returns nil for an unknown time.
func timeOrNil(t trace.Time) *int64 {
	if t == 0 {
		return nil
	}
	return new(int64(t))
}

// number returns nil for values that JSON cannot express. Fractions have six digits, as in tables.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if v != math.Trunc(v) {
		v, _ = strconv.ParseFloat(words.FormatNumber(v), 64) // FormatNumber writes a number
	}
	return &v
}
