package hang

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// Dumps of two jobs with equal ranks are separated by their folders, the members of
// their groups, their hosts, or their times. If nothing separates them, the report
// says so. A job whose ranks differ is one job, wherever its files are.
func TestTwoJobs(t *testing.T) {
	dump := func(file string, rank int32, at trace.Time, world ...int32) *recorder.FlightDump {
		g := recorder.NewGroup("0", "default_pg")
		g.Ranks = world
		return &recorder.FlightDump{File: file, Rank: rank, Time: at, Groups: []recorder.Group{g}}
	}
	for name, c := range map[string]struct {
		dumps []*recorder.FlightDump
		want  string
	}{
		"one, of two hosts": {[]*recorder.FlightDump{dump("a/fr_0", 0, 1e18, 0, 1), dump("b/fr_1", 1, 2e18, 0, 1)}, "true [a/fr_0 b/fr_1]"},
		"folders":           {[]*recorder.FlightDump{dump("a/fr_0", 0, 1e18, 0, 1), dump("a/fr_1", 1, 1e18, 0, 1), dump("b/fr_0", 0, 2e18, 0, 1), dump("b/fr_1", 1, 2e18, 0, 1)}, "true [b/fr_0 b/fr_1] [a/fr_0 a/fr_1]"},
		"worlds":            {[]*recorder.FlightDump{dump("x/fr_0", 0, 1e18, 0, 1), dump("x/fr_1", 1, 1e18, 0, 1), dump("x/fr0_0", 0, 1e18+1, 0, 1, 2), dump("x/fr0_2", 2, 1e18+1, 0, 1, 2)}, "true [x/fr0_0 x/fr0_2] [x/fr_0 x/fr_1]"},
		"hosts":             {[]*recorder.FlightDump{dump("x/n1_0", 0, 2e18, 0, 1), dump("x/n1_1", 1, 2e18, 0, 1), dump("x/n2_0", 0, 2e18, 0, 1), dump("x/n2_1", 1, 2e18, 0, 1)}, "true [x/n1_0 x/n1_1] [x/n2_0 x/n2_1]"},
		"times":             {[]*recorder.FlightDump{dump("x/fr_0", 0, 1e18, 0, 1), dump("x/fr_00", 0, 1e18+100e9, 0, 1), dump("x/fr_1", 1, 1e18+2e9, 0, 1), dump("x/fr_01", 1, 1e18+101e9, 0, 1)}, "true [x/fr_00 x/fr_01] [x/fr_0 x/fr_1]"},
		"nothing":           {[]*recorder.FlightDump{dump("x/fr_0", 0, 1e18, 0, 1), dump("x/fr_00", 0, 1e18+1e9, 0, 1)}, "false [x/fr_0 x/fr_00]"},
	} {
		jobs, ok := jobsOf(c.dumps)
		got := fmt.Sprint(ok)
		for _, j := range jobs {
			var files []string
			for _, d := range j.dumps {
				files = append(files, d.File)
			}
			got += fmt.Sprint(" ", files)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
