package torchdump

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Inspector reads what NCCL's Inspector writes (NCCL 2.28 and later,
// plugins/profiler/inspector): a line of JSON for each collective that ended on a rank, with its
// communicator, its number, its size, how long its kernel took, and the bandwidth. A server may
// write such logs for weeks. They are recordings of collectives and of nothing else.
//
// # What is odd
//
//   - A record has the time of its collective only with NCCL_INSPECTOR_DUMP_VERBOSE=1. Otherwise it has the time of
//     writing, which may be the end of the program: the collective had ended by then.
//   - The number of a collective counts those of one kind in a communicator: #7 of AllReduce and
//     #7 of AllGather differ.
//   - The size is NCCL's count: for an AllGather, the part that one rank contributes, and for a ReduceScatter, the part
//     that one rank gets.
//   - Collectives below 8 KiB are omitted (NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES), and so are those that did not fit in a full
//     ring. Neither are counted.
//   - Collectives that have not ended are missing: in a hang, the logs show when it began, but not which rank is missing.
//   - The rank is that in the communicator. The largest communicator is the closest to the job.
//   - "collective_cpu" times are from the call until the end, including everything queued before it. Such a
//     collective is drawn, but not compared.
var Inspector = &format.Format{
	Name:    "NCCL Inspector",
	Noun:    "NCCL Inspector log",
	Doc:     "every collective of a process with its time and bandwidth, as NCCL Inspector (NCCL 2.28 and later) writes it",
	For:     "'sgtrace report', 'sgtrace report --collectives', or 'sgtrace merge'",
	Sniff:   isInspector,
	Index:   indexInspector,
	Text:    true,
	Machine: true,
}

// isInspector looks for what every record has, in any version.
func isInspector(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"inspector_output_format_version"`))
}

var errNone = errors.New("no line is a record of a collective")

// indexInspector reads a log.
func indexInspector(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, profiles, err := readInspector(in, opt, opt.Diags)
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
			_, profiles, err := readInspector(in, opt, &trace.Diags{}) // damage was reported when the input was indexed
			return profiles, err
		},
		Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
			v.AddProfiles(inventory.Trace{File: in.Name, Size: size, Producer: "NCCL Inspector"}, profiles, are)
		}}, nil
}

func readInspector(in *format.Input, opt *format.Options, diags *trace.Diags) (*inspectorReader, []*profile.Profile, error) {
	content, err := in.Open()
	if err != nil {
		return nil, nil, err
	}
	r := newInspectorReader(opt)
	_, long, err := logline.Lines(content, r.line)
	err = cmp.Or(err, content.Close())
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
