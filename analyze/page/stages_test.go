package page

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// stagesOf returns the section about the stages of a simulated run.
func stagesOf(t *testing.T, config simulator.Config) Section {
	t.Helper()
	set := simulate(t, config)
	timeline, err := load.New(set, 0)
	must(t, err)
	return Stages(set, rank.Measure(place.Of(set)), timeline.From, timeline.To, Source{})
}

// colored counts the known cells of a stage, by row, and the orange ones among them.
func colored(s Section, figure, stage string) (known, orange map[string]int) {
	known, orange = map[string]int{}, map[string]int{}
	for _, f := range s.Figures {
		if f.ID != figure {
			continue
		}
		for _, g := range f.Body.(*chart.TimeHeat).Groups {
			if g.Name != stage {
				continue
			}
			for _, r := range g.Rows {
				for _, v := range r.Values {
					if v == v {
						known[r.Name]++
					}
					if v >= stageSteps[0] {
						orange[r.Name]++
					}
				}
			}
		}
	}
	return known, orange
}

// A replica that takes half as long again is orange most of the time, and its peers are not.
func TestStagesShowTheSlowReplica(t *testing.T) {
	config := testset.Calm(2)
	config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 1, PP: 1, DP: 4}
	config.Straggler = simulator.Straggler{DP: 2, Factor: 1.5}
	known, orange := colored(stagesOf(t, config), "stages-unified", "decode_loop")
	if len(known) != 4 {
		t.Fatalf("rows %v", known)
	}
	for row, n := range known {
		slow := strings.Contains(row, "DP2")
		if n < 10 || slow && orange[row] < n*9/10 || !slow && orange[row] > n/10 {
			t.Errorf("%s is orange in %d of %d parts", row, orange[row], n)
		}
	}
}

// Ranks that wait for each other share one row, and other roles are not peers. A slow tensor parallel
// rank makes its engine orange. The prefill server has no peers, and a note instead of a map.
func TestStagesCompareEngines(t *testing.T) {
	config := simulator.DefaultConfig(1)
	config.Straggler = simulator.Straggler{TP: 1, Delay: 4_000_000}
	s := stagesOf(t, config)
	known, orange := colored(s, "stages-decode", "decode_loop")
	if len(known) != 2 || orange["decode DP0"] < known["decode DP0"]/2 || orange["decode DP1"] > known["decode DP1"]/20 {
		t.Errorf("orange are %v of %v parts", orange, known)
	}
	want := "No heat map of stages of prefill: its 2 ranks wait for each other in every step, so stages take equally long on all of them. Lateness tells them apart."
	if len(s.Notes) != 1 || s.Notes[0] != want {
		t.Errorf("notes %q", s.Notes)
	}
}

// If all engines are equally fast, hardly any part of a stage is orange.
func TestStagesOfEqualEngines(t *testing.T) {
	all, wrong := 0, 0
	for seed := range uint64(3) {
		config := testset.Calm(seed)
		config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 4}
		s := stagesOf(t, config)
		for _, f := range s.Figures {
			heat, ok := f.Body.(*chart.TimeHeat)
			if !ok {
				continue
			}
			for _, g := range heat.Groups {
				known, orange := colored(s, f.ID, g.Name)
				for row, n := range known {
					all, wrong = all+n, wrong+orange[row]
				}
			}
		}
	}
	if all < 500 || wrong > all*3/100 {
		t.Errorf("%d of %d parts are orange", wrong, all)
	}
}
