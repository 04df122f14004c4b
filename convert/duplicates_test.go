package convert

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A PyTorch trace that lies within the export of the same process adds no events of any kind.
func TestDeduplicate(t *testing.T) {
	run, err := simulator.Play(simulator.DefaultConfig(3))
	if err != nil {
		t.Fatal(err)
	}
	nsys := nsys.DefaultConfig(run)
	nsys.Orphans = 0 // else the traces have calls that the exports lack
	torch := nsys.Torch
	torch.From, torch.To = torch.From+100*time.Millisecond, torch.To-150*time.Millisecond
	dir := t.TempDir()
	if err := golden.WriteDir(dir, run, &torch, &nsys); err != nil {
		t.Fatal(err)
	}
	sums := func(paths ...string) (n map[string]int, total map[string]int64, diags []trace.Diag) {
		files, err := inputs.Find(paths)
		if err != nil {
			t.Fatal(err)
		}
		var d trace.Diags
		p, err := readEvidence(files, inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}}, ranks.Options{}, ReportOptions{}, &d)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		n, total = map[string]int{}, map[string]int64{}
		add := func(kind string, e *profile.Event) bool {
			key := kind + " " + profile.CallName(p.Profiles.Syms.Name(e.Name))
			n[key]++
			total[key] += e.Dur()
			return true
		}
		for _, s := range p.Profiles.Streams {
			s.Kernels(func(k *profile.Kernel) bool { return add("kernel", &k.Event) })
			s.Copies(func(c *profile.Copy) bool { return add("copy", &c.Event) })
			s.Calls(func(c *profile.Call) bool { return add("call", &c.Event) })
		}
		return n, total, d.All()
	}
	wantN, wantTotal, _ := sums(filepath.Join(dir, "nsys"))
	torchN, _, _ := sums(filepath.Join(dir, "torch"))
	gotN, gotTotal, diags := sums(filepath.Join(dir, "nsys"), filepath.Join(dir, "torch"))
	if len(torchN) == 0 || len(gotN) != len(wantN) {
		t.Errorf("%d names of both, want %d; %d of the traces", len(gotN), len(wantN), len(torchN))
	}
	for key, n := range wantN {
		if gotN[key] != n || gotTotal[key] != wantTotal[key] {
			t.Errorf("%s: %d in %d ns, want %d in %d ns (%d in the traces)", key, gotN[key], gotTotal[key], n, wantTotal[key], torchN[key])
		}
	}
	said := 0
	for _, d := range diags {
		if d.Code == "recorded-twice" {
			said++
		}
	}
	if said == 0 {
		t.Errorf("nothing is said: %v", diags)
	}
}
