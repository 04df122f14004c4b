package dataset

import (
	"cmp"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// solvedPrefix begins the names of folders of solved tables.
const solvedPrefix = "solved="

// SolvedTables are the tables that are decided from all captures together.
var SolvedTables = []Table{
	describe[RequestRow]("requests", "Requests, joined from their parts, as `sgtrace requests` lists them."),
	describe[PartRow]("parts", "What each server did for a request."),
	describe[StageRow]("stages", "Stages of requests, spans of gateways, and those of services without stages."),
	describe[ClockRow]("clocks", "How each host's clock maps to the common clock: `t - ahead - drift_ppb * (t - t0) / 1e9`. Empty without profiler data."),
	describe[ArrivalRow]("arrivals", "Collectives recorded on more than one rank, one row per collective and rank."),
	describe[PlaceRow]("places", "Maps rows of `slices`, `operators`, `steps`, and the other profiler tables to ranks. Reports skip a row without a place, because another capture has it, too."),
	describe[RepeatedRow]("repeated", "Rows of `slices` that have a place, but that reports skip because another profiler recorded them, too."),
}

// A Solution receives the rows of the solved tables.
type Solution struct {
	requests table[RequestRow]
	parts    table[PartRow]
	stages   table[StageRow]
	clocks   table[ClockRow]
	arrivals table[ArrivalRow]
	places   table[PlaceRow]
	repeated table[RepeatedRow]
}

func (s *Solution) Request(row RequestRow)   { s.requests.write(row) }
func (s *Solution) Part(row PartRow)         { s.parts.write(row) }
func (s *Solution) Stage(row StageRow)       { s.stages.write(row) }
func (s *Solution) Clock(row ClockRow)       { s.clocks.write(row) }
func (s *Solution) Arrival(row ArrivalRow)   { s.arrivals.write(row) }
func (s *Solution) Place(row PlaceRow)       { s.places.write(row) }
func (s *Solution) Repeated(row RepeatedRow) { s.repeated.write(row) }

// ID returns the name of the capture by which tables refer to it.
func (c *Capture) ID() string {
	return strings.TrimPrefix(filepath.Base(c.Dir), capturePrefix)
}

// SolvedDir returns the folder of the solved tables for these captures and version of the program, since
// another version may decide differently.
func SolvedDir(dataset string, captures []*Capture, tool string) string {
	names := []string{tool}
	for _, c := range captures {
		names = append(names, c.ID())
	}
	return filepath.Join(dataset, Version, solvedPrefix+digest(names...)[:24])
}

// Solved reports whether a folder of SolvedDir exists.
func Solved(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// WasSolved reports whether a dataset has any solved tables, possibly stale.
func WasSolved(dataset string) bool {
	dirs, _ := filepath.Glob(filepath.Join(dataset, Version, solvedPrefix+"*")) // the pattern is valid
	return len(dirs) > 0
}

// WriteSolved writes the folder dir of SolvedDir, completely or not at all, and removes earlier ones. It
// returns an error of fill.
func WriteSolved(dir string, fill func(*Solution) error) error {
	parent := filepath.Dir(dir)
	hidden := filepath.Join(parent, Unfinished+rand.Text())
	if err := os.Mkdir(hidden, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(hidden) // does nothing if it was renamed
	if err := cmp.Or(writeSolution(hidden, fill), syncDir(hidden)); err != nil {
		return err
	}
	if err := os.Rename(hidden, dir); err != nil && !Solved(dir) {
		return err // otherwise, another process wrote the same
	}
	return errors.Join(syncDir(parent), removeSolved(parent, dir))
}

func writeSolution(dir string, fill func(*Solution) error) error {
	w := &writer{dir: dir}
	s := &Solution{requests: create[RequestRow](w, "requests-0"), parts: create[PartRow](w, "parts-0"), stages: create[StageRow](w, "stages-0"),
		clocks: create[ClockRow](w, "clocks-0"), arrivals: create[ArrivalRow](w, "arrivals-0"), places: create[PlaceRow](w, "places-0"),
		repeated: create[RepeatedRow](w, "repeated-0")}
	err := fill(s)
	for _, t := range []interface{ close() }{s.requests, s.parts, s.stages, s.clocks, s.arrivals, s.places, s.repeated} {
		t.close()
	}
	return errors.Join(append(w.errs, err)...)
}

// removeSolved removes all other solved tables.
func removeSolved(parent, but string) error {
	all, err := filepath.Glob(filepath.Join(parent, solvedPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range all {
		if dir != but {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}
