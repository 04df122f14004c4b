package ncclinspector

import (
	"bytes"
	"errors"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/logline"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is a log of NCCL Inspector.
var Format = &format.Format{
	Name:    "NCCL Inspector",
	Noun:    "NCCL Inspector log",
	Doc:     "every collective of a process with its time and bandwidth, as NCCL Inspector (NCCL 2.28 and later) writes it",
	For:     "'sgtrace report', 'sgtrace report --collectives', or 'sgtrace merge'",
	Sniff:   func(h format.Head) bool { return sniff(h.Bytes) },
	Index:   index,
	Text:    true,
	Machine: true,
}

// sniff goes by what every record has, whatever its version.
func sniff(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"inspector_output_format_version"`))
}

var errNone = errors.New("no line is a record of a collective")

// index reads a log.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, profiles, err := read(in, opt, opt.Diags)
	if err != nil {
		return nil, err
	}
	if opt.Flight != nil {
		for _, d := range r.ended(in.Name, profiles) {
			opt.Flight.Add(d)
		}
	}
	return &format.Source{Profiles: profiles,
		Stream: func(opt *format.Options) ([]*profile.Profile, error) {
			_, profiles, err := read(in, opt, &trace.Diags{}) // what is wrong was said when it was indexed
			return profiles, err
		},
		Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
			list(v, in.Name, size, profiles, are)
		}}, nil
}

func read(in *format.Input, opt *format.Options, diags *trace.Diags) (*reader, []*profile.Profile, error) {
	content, err := in.Open()
	if err != nil {
		return nil, nil, err
	}
	r := newReader(opt)
	_, long, err := logline.Lines(content, r.line)
	if closed := content.Close(); err == nil {
		err = closed
	}
	switch {
	case r.good == 0 && err != nil:
		return nil, nil, err
	case r.good == 0:
		return nil, nil, errNone
	case err != nil:
		diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	if long > 0 {
		diags.Add(trace.LogLineLong.Of(in.Name, logline.Longest>>20).Times(long))
	}
	if r.bad > 0 {
		diags.Add(trace.RecordBad.Of(in.Name, r.bad))
	}
	if r.queued > 0 {
		diags.Add(trace.InspectorQueued.Of(in.Name, r.queued))
	}
	profiles := r.profiles(in.Name)
	switch {
	case r.undated > 0:
		diags.Add(trace.InspectorUndated.Of(in.Name, r.undated))
	case r.untimed > 0:
		diags.Add(trace.InspectorAbout.Of(in.Name, r.untimed, trace.FormatDuration(profiles[0].Meta.Blur)))
	}
	return r, profiles, nil
}

// list adds the processes of a file to an inventory.
func list(v *inventory.Inventory, file string, size int64, profiles []*profile.Profile, are [][]profile.Identity) {
	row := inventory.Trace{File: file, Size: size, Producer: "NCCL Inspector", Backend: "nccl", Absolute: true}
	for i, p := range profiles {
		row.Host = p.Meta.Host
		for _, is := range are[i] {
			v.AddProcess(inventory.Process{File: file, Is: is, N: 1, PID: p.Meta.PID, World: p.Meta.WorldSize, Events: int64(p.Total), First: p.First, Last: p.Last, Timed: true, Collectives: int64(p.Collectives.Len())})
		}
	}
	v.Traces = append(v.Traces, row)
}
