package graphs

import (
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// The replay that is shown has each kernel of each layer once, starting at the beginning
// of a layer. A model of few layers has none.
func TestOneReplay(t *testing.T) {
	p := newPlant(false)
	for range 3 {
		p.replay(layers(6, 16), 16)
	}
	list, what := Read(testset.SetOf(p.syms, []string{"rank 0"}, &p.rows)).OneReplay()
	kernels, begins := map[string]int{}, map[string]int{}
	for i := range list {
		kernels[list[i].Layer]++
		if list[i].From == 0 {
			begins[list[i].Layer]++
		}
		if list[i].To <= list[i].From {
			t.Errorf("%+v ends before it begins", list[i])
		}
	}
	if len(kernels) != 6 || kernels["layer 3"] != 8 || begins["layer 3"] != 1 || what == "" {
		t.Errorf("%v, begun %v, %q", kernels, begins, what)
	}
	p = newPlant(false)
	p.replay(layers(3, 16), 16)
	if list, _ := Read(testset.SetOf(p.syms, []string{"rank 0"}, &p.rows)).OneReplay(); list != nil {
		t.Errorf("3 layers: %v", list)
	}
}
