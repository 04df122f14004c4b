package chrometrace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What this package writes it reads again: every slice, instant and value at its
// absolute time.
func TestOwnOutputComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		tr := model(randomBytes(rng, 400))
		data := encode(t, tr)
		r := readWith(Options{Workers: 2}, small, same, data)
		if r.err != nil {
			if len(tr.Slices) == 1 && len(tr.Instants)+len(tr.Samples) == 0 {
				continue
			}
			t.Fatal(r.err)
		}
		if r.loss() || r.Meta.Origin != OriginUnix && r.Total > 0 {
			t.Errorf("%v %v", r.Meta, r.diags)
		}
		var got, want []string
		for _, s := range r.Events {
			got = append(got, fmt.Sprintf("%d+%d %s", s.Time, s.Dur, r.name(s.Name)))
		}
		for _, s := range tr.Slices[1:] {
			want = append(want, fmt.Sprintf("%d+%d %s", s.Time, s.Dur, strings.ToValidUTF8(tr.Syms.Name(s.Name), "\uFFFD")))
		}
		for _, x := range r.Instants {
			got = append(got, fmt.Sprintf("%d %s", x.Time, r.name(x.Name)))
		}
		for _, x := range tr.Instants {
			want = append(want, fmt.Sprintf("%d %s", x.Time, strings.ToValidUTF8(tr.Syms.Name(x.Name), "\uFFFD")))
		}
		for _, x := range r.Samples {
			got = append(got, fmt.Sprintf("%d %v", x.Time, x.Value))
		}
		for _, x := range tr.Samples {
			want = append(want, fmt.Sprintf("%d %v", x.Time, x.Value))
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := diff(got, want); d != "" {
			t.Error(d)
		}
		records, err := reference(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(r.records(), records); d != "" {
			t.Errorf("against encoding/json: %s", d)
		}
	}
}
