package dataset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Index reads a capture as f, the format of its original, would read the original: it returns the same.
// original opens the original for what captures do not store: arguments and arrows of timelines, and
// possible secrets. If it is nil, these are missing.
func (c *Capture) Index(f *format.Format, in *format.Input, opt *format.Options, original func(*format.Options) (*format.Source, error)) (*format.Source, error) {
	if f.Series || f.Aside {
		return c.untabled(f, in, opt, original)
	}
	timeline := !f.Requests && !opt.Walk && (!opt.Filter.IndexOnly || f.Machine)
	if original != nil && (timeline || f.Requests && opt.KeepSecrets) {
		return original(opt)
	}
	if err := c.Report(opt.Diags); err != nil {
		return nil, err
	}
	if c.Unusable != "" {
		return nil, errors.New(c.Unusable)
	}
	if f.Requests {
		return &format.Source{}, c.readSpans(in.Name, opt.Spans)
	}
	return c.recording(f, in, opt, original)
}

// untabled reads logs, metrics, and work in flight, which captures have no tables of, from the original.
// Without it, only the requests in records are left, as spans.
func (c *Capture) untabled(f *format.Format, in *format.Input, opt *format.Options, original func(*format.Options) (*format.Source, error)) (*format.Source, error) {
	err := errors.New("reports need the original of a " + f.Noun + ", and it is gone or has changed")
	if original != nil {
		var source *format.Source
		if source, err = original(opt); err == nil {
			return source, nil
		}
	}
	if !f.Requests {
		return nil, err
	}
	opt.Diags.Add(trace.DatasetUntabled.Of(in.Name, f.Noun))
	return &format.Source{}, c.readSpans(in.Name, opt.Spans)
}

// Report adds the diagnostics of the first reading, except those of walks.
func (c *Capture) Report(diags *trace.Diags) error {
	met, err := c.readDiags()
	addAll(diags, met[DuringIndex])
	return err
}

func addAll(diags *trace.Diags, list []trace.Diag) {
	for _, d := range list {
		diags.Add(d)
	}
}

// recording reads a profile.
func (c *Capture) recording(f *format.Format, in *format.Input, opt *format.Options, original func(*format.Options) (*format.Source, error)) (*format.Source, error) {
	if f.Again && !opt.Walk {
		return c.walkedTimeline(in, opt)
	}
	index := *opt
	if f.Again { // rows that will be walked are not events
		index.Filter.IndexOnly, index.Filter.Fingerprint = true, false
	}
	profiles, err := c.readProfiles(in.Name, "", &index)
	if err != nil {
		return nil, err
	}
	s := &format.Source{Profiles: profiles, Inventory: func(v *inventory.Inventory, size int64, _ [][]profile.Identity) { c.list(v, size, opt.Diags) }}
	s.Stream = func(opt *format.Options) ([]*profile.Profile, error) {
		if opt.Filter.CollectivesOnly {
			return c.readProfiles(in.Name, collectivesView, opt)
		}
		if original == nil {
			return c.readProfiles(in.Name, "", opt)
		}
		f := &opt.Filter
		apart := func(p *profile.Profile) bool { return f.From > p.Last || f.To != 0 && f.To < p.First }
		if !slices.ContainsFunc(profiles, func(p *profile.Profile) bool { return !apart(p) }) {
			none := *opt
			none.Filter.IndexOnly = true
			return c.readProfiles(in.Name, "", &none) // without opening the original
		}
		return streamed(original, opt)
	}
	if f.Again {
		s.Print = c.Print
		s.Rows = func(rank func(pid int32) int32) profile.Stream { return c.newStream(in.Name, opt, rank) }
	}
	return s, nil
}

// walkedTimeline reads a recording that is usually walked for drawing, without the original.
func (c *Capture) walkedTimeline(in *format.Input, opt *format.Options) (*format.Source, error) {
	profiles, err := c.drawn(in.Name, opt)
	return &format.Source{Profiles: profiles, Stream: func(opt *format.Options) ([]*profile.Profile, error) { return c.drawn(in.Name, opt) }}, err
}

// streamed reads the events of an original that a filter keeps. It reads the index first, since the time
// origin may be stored after the events.
func streamed(original func(*format.Options) (*format.Source, error), opt *format.Options) ([]*profile.Profile, error) {
	first := *opt
	first.Filter = profile.Filter{IndexOnly: true}
	source, err := original(&first)
	if err != nil {
		return nil, err
	}
	return source.Stream(opt)
}

// list adds the original's content to an inventory: as listed with its size and ranks, or as listed without
// them.
func (c *Capture) list(v *inventory.Inventory, size int64, diags *trace.Diags) {
	from, during := c.Listed, DuringList
	if size >= 0 {
		from, during = c.Inspected, DuringInspect
	}
	if met, err := c.readDiags(); err == nil {
		addAll(diags, met[during])
	}
	if from == nil {
		return
	}
	v.Exports, v.Traces, v.Processes = append(v.Exports, from.Exports...), append(v.Traces, from.Traces...), append(v.Processes, from.Processes...)
	v.Devices, v.Tables = append(v.Devices, from.Devices...), append(v.Tables, from.Tables...)
	v.Categories, v.Messages = append(v.Categories, from.Categories...), append(v.Messages, from.Messages...)
}

// readDiags returns the diagnostics of the capture, by the reading in which they came up.
func (c *Capture) readDiags() (map[string][]trace.Diag, error) {
	in := c.openRows("diagnostics-0", nil)
	during, code, severity, text := in.column("during"), in.column("code"), in.column("severity"), in.column("text")
	file, line, offset, count := in.column("file"), in.column("line"), in.column("byte_offset"), in.column("n")
	known := map[string]*trace.Message{}
	for _, m := range trace.Messages() {
		known[m.Code] = m
	}
	met := map[string][]trace.Diag{}
	for in.next() {
		m := known[string(code.text())]
		if m == nil { // from a later version
			m = &trace.Message{Code: string(code.text()), Severity: trace.Severity(severity.int())}
			known[m.Code] = m
		}
		d := trace.Diag{Message: m, Pos: trace.Pos{File: string(file.text()), Line: line.int(), Offset: offset.int()}, Msg: string(text.text()), Count: int(count.int())}
		met[string(during.text())] = append(met[string(during.text())], d)
	}
	return met, in.close()
}

// Gone returns the error that an original is gone or has changed.
func (c *Capture) Gone(why error) error {
	return fmt.Errorf("the original %s, which a timeline needs: %w", c.Path, why)
}
