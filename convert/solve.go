package convert

import (
	"errors"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Solved says where the tables are that hold what the captures of a dataset say together.
type Solved struct {
	Dir     string // the folder with the tables
	Written bool   // they were stale, and were written anew
}

// Solve brings the tables of what all captures of a dataset say together up to date, as reports
// would print it: requests joined from their parts, the rank of each recording, rows that several
// captures have, and one clock. tool is the version of the program; meter may be nil. Problems with
// captures go to diags if the captures are read.
func Solve(folder, tool string, meter inputs.Meter, diags *trace.Diags) (r Solved, err error) {
	captures, err := dataset.Captures(folder)
	if err != nil {
		return r, err
	}
	r.Dir = dataset.SolvedDir(folder, captures, tool)
	if dataset.Solved(r.Dir) {
		return r, nil
	}
	files, err := inputs.Find([]string{folder})
	if err != nil {
		return r, err
	}
	// Kernels are how copies are found, and recordings of one process by two profilers.
	in, of, err := Read(files, inputs.Options{Meter: meter, Walk: true, Filter: profile.Filter{Cats: []string{profile.KernelCategory}, Args: profile.ArgsNone}}, ranks.Options{}, diags)
	if err != nil {
		return r, err
	}
	e, err := ForReports(in, of, ReportOptions{MatchCollectives: true})
	if err != nil {
		return r, err
	}
	if e.Requests != nil {
		e.OnOneClock()
	}
	s := &solution{of: of, evidence: e}
	err = dataset.WriteSolved(r.Dir, s.fill)
	r.Written = err == nil
	return r, errors.Join(err, e.Close())
}

// A solution collects the tables to write.
type solution struct {
	Solution *dataset.Solution
	of       *ranks.Assignment
	evidence *ReportData
}

func (s *solution) fill(to *dataset.Solution) error {
	s.Solution = to
	if s.evidence.Requests != nil {
		s.writeRequests(s.evidence.Requests)
	}
	s.writeClocks()
	s.writeArrivals()
	s.writePlaces()
	s.writeRepeated()
	return nil
}

// writeClocks writes how the clocks relate.
func (s *solution) writeClocks() {
	for _, l := range s.evidence.Clocks.Clocks {
		s.Solution.Clock(dataset.ClockRow{Clock: l.Host, Why: l.Why, By: l.By, T0: l.T0, Ahead: l.Offset, Drift: l.DriftPPB, Bound: l.Bound})
	}
}

// writeArrivals writes the collectives that were seen on several ranks.
func (s *solution) writeArrivals() {
	e := s.evidence
	n := int64(0)
	for p := range e.Profiles.Matches(true) {
		first := p.FirstArrival()
		row := dataset.ArrivalRow{Collective: n, Name: e.Profiles.Syms.Name(p.Name), Op: e.Profiles.Syms.Name(p.Op), Group: e.Profiles.Syms.Name(p.Group), Size: p.GroupSize,
			Dtype: e.Profiles.Syms.Name(p.Dtype), Elements: p.In, Step: dataset.StepKind(p.Step), Sync: p.Sync, Bound: p.Bound}
		for _, a := range p.Arrivals {
			row.Rank, row.Host = e.Profiles.Ranks[a.Rank], s.hostOf(int(a.Rank))
			row.Start, row.Dur, row.Late = int64(a.Start), int64(a.End-a.Start), int64(a.Start-first)
			s.Solution.Arrival(row)
		}
		n++
	}
}

// hostOf names the host of a rank.
func (s *solution) hostOf(rank int) string { return s.of.Names.Host(s.of.Tracks[rank].Host) }
