package sglang

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// readExpertFiles reads files from a folder.
func readExpertFiles(t testing.TB, files map[string][]byte) (*recorder.Experts, *trace.Diags) {
	t.Helper()
	set, diags := &recorder.Experts{}, &trace.Diags{}
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if !ExpertDump.Sniff(data[:min(len(data), 64<<10)]) {
			t.Errorf("%s is not recognized", name)
		}
		in := &format.Input{Name: path, Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if _, err := ExpertDump.Index(in, &format.Options{Diags: diags, Experts: set}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	set.Finish()
	return set, diags
}

// The counts of the ranks add up to what was simulated, in every form.
func TestCounts(t *testing.T) {
	for mode := torch.ExpertsStat; mode <= torch.ExpertsCSV; mode++ {
		for _, same := range []bool{false, true} {
			c := torch.ExpertConfig{Seed: uint64(mode), Mode: mode, Layers: 5, Dense: 2, Experts: 16, TopK: 3, EP: 4, Passes: 6, Tokens: 40, Popular: 0.3, Same: same, Ring: 9}
			if mode == torch.ExpertsPerPass || mode == torch.ExpertsPerToken {
				c.Redundant = 8
			}
			truth := torch.PlayExperts(c)
			set, diags := readExpertFiles(t, truth.Files)
			list := set.Recordings()
			if len(list) != 1 || len(diags.All()) > 0 {
				t.Fatalf("mode %d: %d recordings, %v", mode, len(list), diags.All())
			}
			r := list[0]
			want, times := truth.Counts, uint32(1)
			if same {
				times = uint32(c.EP)
			}
			if mode == torch.ExpertsCSV {
				want = [][][]int64{addPasses(want)}
			}
			if len(r.Passes) != len(want) || r.Times != times || r.Time.String() == "" || r.Time/1e9 != torch.ExpertsStart+3600 {
				t.Errorf("mode %d: passes %v, each token %d times, at %d", mode, r.Passes, r.Times, r.Time)
			}
			for p := range want {
				for l := range want[p] {
					if got := r.Of(p, l); !slices.EqualFunc(got, want[p][l], func(a uint32, b int64) bool { return int64(a) == b*int64(times) }) {
						t.Fatalf("mode %d, same %v, pass %d, layer %d: %v, want %v", mode, same, p, l, got, want[p][l])
					}
				}
			}
			if (r.Map != nil) != (mode != torch.ExpertsStat && mode != torch.ExpertsCSV) {
				t.Errorf("mode %d: map %v", mode, r.Map)
			}
			for l := range r.Map {
				for e, logical := range r.Map[l] {
					if int(logical) != (e+l)%c.Experts {
						t.Fatalf("mode %d: expert %d of layer %d is %d", mode, e, l, logical)
					}
				}
			}
		}
	}
}

func addPasses(passes [][][]int64) [][]int64 {
	out := passes[0]
	for _, p := range passes[1:] {
		for l := range p {
			for e, n := range p[l] {
				out[l][e] += n
			}
		}
	}
	return out
}

// Passes that some ranks lack are dropped, and dumps from a different time are another recording.
func TestRanks(t *testing.T) {
	files := torch.PlayExperts(torch.ExpertConfig{Seed: 1, Mode: torch.ExpertsPerPass, Layers: 2, Experts: 8, TopK: 2, EP: 2, Passes: 3, Tokens: 20}).Files
	more := torch.PlayExperts(torch.ExpertConfig{Seed: 2, Mode: torch.ExpertsPerPass, Layers: 2, Experts: 8, TopK: 2, EP: 2, Passes: 5, Tokens: 20}).Files
	for name, data := range more {
		if strings.HasSuffix(name, "_1.pt") {
			files[name] = data
		} else {
			files[strings.Replace(name, fmt.Sprint(torch.ExpertsStart+3600), fmt.Sprint(torch.ExpertsStart+9000), 1)] = data
		}
	}
	set, _ := readExpertFiles(t, files)
	list := set.Recordings()
	if len(list) != 2 || len(list[0].Passes) != 3 || list[0].Partial != 2 || len(list[1].Passes) != 5 || len(list[1].Ranks) != 1 {
		t.Errorf("%+v", list)
	}
}

// A file that is truncated, has other names, or is compressed is refused with a reason. No prompt is kept.
func TestRefused(t *testing.T) {
	truth := torch.PlayExperts(torch.ExpertConfig{Seed: 1, Mode: torch.ExpertsPerToken, Layers: 2, Experts: 8, TopK: 2, EP: 1, Passes: 2, Tokens: 20})
	for _, data := range truth.Files {
		for what, x := range map[string]struct {
			data []byte
			want string
		}{
			"cut":   {data[:len(data)-30], "is cut off"},
			"names": {bytes.ReplaceAll(data, []byte("torch._utils"), []byte("torch._evils")), `names "torch._evils._rebuild_tensor_v2"`},
			"type":  {bytes.ReplaceAll(data, []byte("IntStorage"), []byte("IntStoraze")), "names"},
		} {
			path := filepath.Join(t.TempDir(), "x.pt")
			if err := os.WriteFile(path, x.data, 0o644); err != nil {
				t.Fatal(err)
			}
			in := &format.Input{Name: "x.pt", Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
			_, err := ExpertDump.Index(in, &format.Options{Diags: &trace.Diags{}, Experts: &recorder.Experts{}})
			// The change also invalidates the checksum.
			if err == nil || !strings.Contains(err.Error(), x.want) && !strings.Contains(err.Error(), "checksum") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	set, _ := readExpertFiles(t, truth.Files)
	if text := fmt.Sprintf("%+v", *set.Dumps[0]); strings.Contains(text, strconv.Itoa(torch.ExpertsCanary)) {
		t.Error("a prompt is held")
	}
}

// expertSubject is the file that mutants are made from.
func expertSubject(mode torch.ExpertMode) *testinput.Subject {
	for _, data := range torch.PlayExperts(torch.ExpertConfig{Seed: 3, Mode: mode, Layers: 3, Dense: 1, Experts: 8, TopK: 2, EP: 1, Passes: 4, Tokens: 10}).Files {
		return &testinput.Subject{Data: data, Cuts: testinput.Pages(data, 64), Other: data, OtherCuts: testinput.Pages(data, 100)}
	}
	return nil
}

// useExperts reads a file that may be damaged.
func useExperts(t testing.TB, data []byte) {
	path := filepath.Join(t.TempDir(), "expert_distribution_recorder_1770000000.5_0.pt")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	set := &recorder.Experts{}
	in := &format.Input{Name: path, Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
	if _, err := ExpertDump.Index(in, &format.Options{Diags: &trace.Diags{}, Experts: set}); err != nil {
		return
	}
	set.Finish()
	for _, r := range set.Recordings() {
		for p := range r.Passes {
			for l := range r.Layers {
				if len(r.Of(p, l)) != r.Experts {
					t.Fatal("a layer has another number of experts")
				}
			}
		}
	}
}

func TestExpertMutants(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SGTRACE_MUTANTS"))
	if err != nil {
		n = 14
	}
	for mode := torch.ExpertsStat; mode <= torch.ExpertsCSV; mode++ {
		s := expertSubject(mode)
		for seed := range uint64(n) {
			useExperts(t, s.Mutate(seed).Data)
		}
	}
}

func FuzzExpertDump(f *testing.F) {
	for mode := torch.ExpertsStat; mode <= torch.ExpertsCSV; mode++ {
		f.Add(expertSubject(mode).Data)
	}
	f.Add([]byte(`{"physical_to_logical_map": [[0, 1], [1, 0]]}`))
	f.Fuzz(func(t *testing.T, data []byte) { useExperts(t, data) })
}

// BenchmarkExpertDump measures the indexing time per byte of the file.
func BenchmarkExpertDump(b *testing.B) {
	truth := torch.PlayExperts(torch.ExpertConfig{Seed: 1, Mode: torch.ExpertsPerPass, Layers: 20, Experts: 256, TopK: 8, EP: 8, Passes: 20, Tokens: 100})
	dir := b.TempDir()
	var paths []string
	for name, data := range truth.Files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, path)
		b.SetBytes(int64(len(data) * len(truth.Files)))
	}
	for b.Loop() {
		for _, path := range paths {
			in := &format.Input{Name: path, Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
			if _, err := ExpertDump.Index(in, &format.Options{Diags: &trace.Diags{}, Experts: &recorder.Experts{}}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
