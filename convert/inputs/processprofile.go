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

// Parts returns the parts that a file has events of, sorted.
func (f *ProcessProfile) Parts() []string {
	parts := order.Distinct(order.EachRow(f.Rows, func(r *profile.Row) string { return r.Part }))
	if len(parts) > 1 { // rows without a part belong to no rank: the merger writes every pid with a part
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

// Describe returns the facts about a part of f before ranks are resolved.
func (f *ProcessProfile) Describe(part string) naming.Input {
	in := naming.Input{Path: f.Name, Said: f.Source.Input.said(), Label: f.Source.Input.Label, HeaderRank: f.Meta.Rank, WorldSize: f.Meta.WorldSize, HeaderHost: f.Meta.Host}
	if part != "" {
		// A merged file has the header of its first rank.
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

// A ProcessProfile is the profile of one file, with its events in drawing order.
type ProcessProfile struct {
	*profile.Profile
	Source *Source
	Lines  []TrackRow
	LineOf []int32 // by row
	// Tolerance is how far an event may extend beyond its parent, in ns.
	Tolerance trace.Time
	// Duplicates are recordings of the same process by another profiler, whose events were moved into this
	// one.
	Duplicates []*ProcessProfile
}

// newProcessProfile sorts the events of p.
func newProcessProfile(p *profile.Profile, source *Source) *ProcessProfile {
	t := &ProcessProfile{Source: source}
	t.Replace(p)
	return t
}

// Replace replaces the content with p, which was read again from the same file.
func (f *ProcessProfile) Replace(p *profile.Profile) {
	f.Profile = p
	f.Tolerance = toleranceOf(p)
	f.Lines, f.LineOf = sortTracks(p, f.Tolerance)
}

// GiveUp releases the events of a file once it is known that none of them will be drawn.
func (f *ProcessProfile) GiveUp() {
	f.Replace(&profile.Profile{Name: f.Name, Meta: f.Meta, First: f.First, Last: f.Last, Total: f.Total})
}

// Formats returns the formats of the files that contributed to the recording.
func (f *ProcessProfile) Formats() []*format.Format {
	all := []*format.Format{f.Source.Format}
	for _, t := range f.Duplicates {
		all = append(all, t.Source.Format)
	}
	return all
}
