package golden

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

func TestExportsInDir(t *testing.T) {
	r := testinput.PlaySmall(t, 1, func(c *simulator.Config) {})
	traces, exports := torch.DefaultConfig(r), nsys.DefaultConfig(r)
	traces.To = traces.From
	exports.Torch.To, exports.Torch.Layers = exports.Torch.From+150*time.Millisecond, 4
	dir := t.TempDir()
	if err := WriteDir(dir, r, &traces, &exports); err != nil {
		t.Fatal(err)
	}
	truth, alone := readTruth(t, dir), t.TempDir()
	want, err := nsys.WriteDir(alone, r, exports)
	if err != nil {
		t.Fatal(err)
	}
	if truth.Torch == nil || truth.Nsys == nil || len(truth.Nsys.Files) != 2 || !reflect.DeepEqual(truth.Nsys, want) {
		t.Fatalf("truth has %v and %v", truth.Torch, truth.Nsys)
	}
	for _, f := range want.Files {
		got, err := os.ReadFile(filepath.Join(dir, "nsys", f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join(alone, "nsys", f.Name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what nsys.WriteDir writes (%v)", f.Name, err)
		}
	}
}

func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := testinput.Play(t, 1, func(c *simulator.Config) { c.Requests = 5 })
	for range 2 { // the second time overwrites the files of the first
		if err := WriteDir(dir, r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	if err := otlp.Write(&want, r); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "otel.jsonl")); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("otel.jsonl is not what otlp.Write writes (%v)", err)
	}
	readTruth(t, dir)
	if err := WriteDir(filepath.Join(dir, "otel.jsonl"), r, nil, nil); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// readTruth reads truth.json.
func readTruth(t *testing.T, dir string) *Truth {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	truth := new(Truth)
	if err := json.Unmarshal(text, truth); err != nil || truth.Schema != simulator.TruthSchema {
		t.Fatalf("truth.json of schema %q (%v)", truth.Schema, err)
	}
	return truth
}

var traceName = regexp.MustCompile(`^((prefill|decode)-)?\d{10}\.\d{7}-TP-(\d+)(-DP-(\d+))?(-PP-(\d+))?\.trace\.json(\.gz)?$`)

func TestTracesInDir(t *testing.T) {
	r := testinput.Play(t, 1, func(c *simulator.Config) { c.RanksPerHost, c.HostSkew = 2, time.Millisecond })
	c := torch.DefaultConfig(r)
	c.To = c.From + 100*time.Millisecond
	dir := filepath.Join(t.TempDir(), "a")
	if err := WriteDir(dir, r, &c, nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteDir(filepath.Join(dir, "plain"), r, nil, nil); err != nil {
		t.Fatal(err)
	}
	truth := readTruth(t, dir)
	if readTruth(t, filepath.Join(dir, "plain")).Torch != nil || len(truth.Torch.Files) != testinput.Schedulers(r) || len(truth.Torch.Groups) != 3 {
		t.Errorf("truth has %d files and %d groups", len(truth.Torch.Files), len(truth.Torch.Groups))
	}
	for i, f := range truth.Torch.Files {
		parts := traceName.FindStringSubmatch(f.Name)
		if parts == nil || !strings.HasPrefix(f.Rank, "TP"+parts[3]+"-") || parts[5] != "" && !strings.HasSuffix(f.Rank, "-DP"+parts[5]) {
			t.Errorf("%s is the name for %s", f.Name, f.Rank)
		}
		file, err := os.Open(filepath.Join(dir, "torch", f.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		z, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if _, err := torch.Write(&want, r, c, i); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what torch.Write writes (%v)", f.Name, err)
		}
	}
}
