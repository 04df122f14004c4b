package convert

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/internal/tracename"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/trace"
)

// Inspect reads inputs of any kind as far as it takes to tell what they hold: dumps in
// full, traces without arguments, exports without events. What profilers recorded it adds
// to in; the requests are nil without dumps. An input that cannot be used is reported to diags and left out; the error is
// for when none is left.
func Inspect(inputs []Input, opt ReadOptions, diags *trace.Diags, in *inventory.Inventory) (*request.Set, error) {
	m := &Merge{dump: newDump(diags, opt.KeepSecrets), diags: diags}
	opt.Filter = profile.Filter{Args: profile.ArgsNone}
	var dumps []candidate
	used := 0
	for i := range inputs {
		s := candidate{input: inputs[i]}
		err := s.recognise(&opt)
		switch {
		case err != nil:
		case s.format == FormatOTLP:
			dumps = append(dumps, s)
			continue
		case s.format == FormatSQLite:
			err = m.inspectExport(&s, in)
		default:
			err = m.inspectTrace(&s, &opt, in)
		}
		if err != nil {
			m.unusable(s.input, err)
			continue
		}
		used++
	}
	m.readOTLP(dumps, &opt)
	if m.dump.Len() > 0 {
		a := assembly.Build(m.dump)
		a.Release()
		return a.Set, nil
	}
	if used == 0 {
		return nil, ErrNoEvents
	}
	return nil, nil
}

func (m *Merge) inspectExport(s *candidate, in *inventory.Inventory) error {
	src, err := rows.Open(s.input.Name, rows.Options{Syms: m.dump.Syms, Diags: m.diags, Brief: true})
	if err != nil {
		return err
	}
	processes := nsysexport.Outline(src)
	slices.SortFunc(processes, func(a, b *profile.Profile) int { return cmp.Compare(a.Meta.PID, b.Meta.PID) })
	var are []profile.Identity
	for _, p := range processes {
		are = append(are, identify(&recording{Profile: p, source: s}, ""))
	}
	nsysexport.Inventory(in, src, sizeOf(s.input.Name), processes, are)
	return src.Close()
}

func (m *Merge) inspectTrace(s *candidate, opt *ReadOptions, in *inventory.Inventory) error {
	stream, err := s.open(opt)
	if err != nil {
		return err
	}
	p, err := chrometrace.Read(stream.Name, stream, chrometrace.Options{Syms: m.dump.Syms, Args: m.dump.Args, Diags: m.diags, Filter: opt.Filter})
	if err := errors.Join(err, stream.Close()); err != nil {
		return err
	}
	f := newRecording(p, s)
	var parts []profile.Identity
	for _, name := range f.parts() {
		parts = append(parts, identify(f, name))
	}
	chrometrace.Inventory(in, f.Profile, m.dump.Syms, sizeOf(s.input.Name), parts)
	return nil
}

// identify finds out which rank a part of a file is, by itself: other files may tell
// more.
func identify(f *recording, part string) profile.Identity {
	all, _ := tracename.Resolve([]tracename.Input{f.describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}

// sizeOf returns the size of a file, -1 if that is unknown.
func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}
