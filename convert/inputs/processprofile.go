package inputs

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Parts returns the parts that a file has events of, in order.
func (f *ProcessProfile) Parts() []string {
	parts := order.Distinct(order.EachRow(f.Rows, func(r *profile.Row) string { return r.Part }))
	if len(parts) > 1 { // rows without a part are nobody's: the merger writes all pids with one
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" && !f.hasEvents(p) })
	}
	if len(parts) == 0 {
		parts = []string{""}
	}
	return parts
}

func (f *ProcessProfile) hasEvents(part string) bool {
	return slices.ContainsFunc(f.Lines, func(l TrackRow) bool { return l.Key.Part == part && !l.Empty() })
}

// Describe returns the facts about a part of f before ranks are compared.
func (f *ProcessProfile) Describe(part string) naming.Input {
	in := naming.Input{Path: f.Name, Said: f.Source.Input.said(), Label: f.Source.Input.Label, HeaderRank: f.Meta.Rank, WorldSize: f.Meta.WorldSize, HeaderHost: f.Meta.Host}
	if part != "" {
		// The header of a merged file is that of its first rank.
		in.Label, in.HeaderRank, in.HeaderHost = strings.TrimPrefix(f.Source.Input.Label+"/"+part, "/"), -1, ""
		if label, ok := f.Meta.Parts[part]; ok {
			in.Label = label
		}
	}
	seen := map[string]bool{"": true}
	for i := range f.Rows {
		if p := f.Rows[i].Process; f.Rows[i].Part == part && !seen[p] {
			seen[p] = true
			in.Processes = append(in.Processes, p)
		}
	}
	return in
}

// A ProcessProfile is the profile of one file, with its events in the order in which they are drawn.
type ProcessProfile struct {
	*profile.Profile
	Source *Source
	Lines  []TrackRow
	LineOf []int32 // of each row
	// Tolerance is by how much an event may reach over the one around it.
	Tolerance trace.Time
	// Duplicates are recordings of the same process by another profiler, whose events were
	// put into this one.
	Duplicates []*ProcessProfile
}

// newProcessProfile brings the events of p in order.
func newProcessProfile(p *profile.Profile, source *Source) *ProcessProfile {
	t := &ProcessProfile{Source: source}
	t.Replace(p)
	return t
}

// Replace puts p in the place of what was read before from the same file.
func (f *ProcessProfile) Replace(p *profile.Profile) {
	f.Profile = p
	f.Tolerance = toleranceOf(p)
	f.Lines, f.LineOf = sortTracks(p, f.Tolerance)
}

// GiveUp frees the events of a file, once it is known that none of them are drawn.
func (f *ProcessProfile) GiveUp() {
	f.Replace(&profile.Profile{Name: f.Name, Meta: f.Meta, First: f.First, Last: f.Last, Total: f.Total})
}

// Formats are those of the files that the events of a recording are from.
func (f *ProcessProfile) Formats() []*format.Format {
	all := []*format.Format{f.Source.Format}
	for _, t := range f.Duplicates {
		all = append(all, t.Source.Format)
	}
	return all
}
