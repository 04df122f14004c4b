package chrometrace

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// shared returns the content of a file, decompressed as far as possible.
func shared(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if z, err := gzip.NewReader(f); err == nil {
		r = z
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil && err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	return data
}

// betweenEvents matches the end of an event and the beginning of the next.
var betweenEvents = regexp.MustCompile(`\}\s*,\s*(\{)\s*"(?:ph|name|cat|pid|args|ts|tid)"`)

// someEvents returns a long document with all members but only its first and last events, because
// encoding/json is slow.
func someEvents(data []byte) []byte {
	const part = 300 << 10
	if len(data) < 3*part {
		return data
	}
	lastCut := func(data []byte) int {
		all := betweenEvents.FindAllSubmatchIndex(data, -1)
		return all[len(all)-1][2]
	}
	head := lastCut(data[:part])
	tail := len(data) - part
	tail += lastCut(data[tail : tail+part/2])
	return slices.Concat(data[:head], data[tail:])
}

// Real traces are read as encoding/json reads them, without diagnostics.
func TestSharedTraces(t *testing.T) {
	for _, pattern := range []string{"torch/real/*", "torch/tp8_skew_2host/*-TP-5-*.gz", "merge/*.trace.json.gz"} {
		paths, _ := filepath.Glob(testinput.Shared(t, "data", pattern))
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				data := shared(t, path)
				if !sniff(data[:min(len(data), 64<<10)]) {
					t.Error("not recognized")
				}
				l := parse.Limits{Block: 1 << 16, Record: 64 << 20}
				r := readWith(Options{Workers: 2}, l, same, data)
				if n := bytes.Count(data, []byte(`"ph": "X"`)); len(r.Events) != n || len(r.diags) > 0 {
					t.Errorf("%d events of %d; %v", len(r.Events), n, r.diags)
				}
				if r.Meta.Origin != profile.OriginUnix {
					t.Error("the origin is not known")
				}
				if data = someEvents(data); len(data) == 0 {
					t.Fatal("no events")
				}
				r = readWith(Options{Workers: 2}, l, same, data)
				want, err := reference(data)
				if err != nil {
					t.Fatal(err)
				}
				if d := diff(r.records(), want); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// Damaged traces have the expected number of events and diagnostics.
func TestSharedMalformed(t *testing.T) {
	dir := testinput.Shared(t, "data", "torch", "malformed")
	for name, want := range map[string]struct {
		events int
		codes  string
	}{
		"00_ok.json":                   {3, ""},
		"01_unescaped_quote_name.json": {4, "trace-unescaped-quote"},
		"02_control_char_name.json":    {4, "trace-odd-name"},
		"03_newline_in_name.json":      {4, "trace-odd-name"},
		"04_bare_inf_bandwidth.json":   {4, "trace-bare-word"},
		"05_bare_NA.json":              {4, "trace-bare-word"},
		"07_args_trailing_comma.json":  {4, "trace-comma"},
		"12_truncated_mid_event.json":  {2, "trace-truncated"},
		"14_array_form.json":           {3, "trace-no-base"},
		"15_array_form_unclosed.json":  {3, "trace-no-base"},
		"23_comms_id_u64.json":         {4, ""},
		"30_gzip_truncated.json.gz":    {301, "trace-truncated"},
		"31_gzip_multimember.json.gz":  {600, ""},
		"33_gzip_named_json.json":      {600, ""},
	} {
		r := parsed(t, string(shared(t, filepath.Join(dir, name))))
		var codes []string
		for _, d := range r.diags {
			codes = append(codes, d.Code)
		}
		if got := strings.Join(codes, " "); len(r.Events) != want.events || got != want.codes {
			t.Errorf("%s: %d events, %v; want %d, %s", name, len(r.Events), r.diags, want.events, want.codes)
		}
	}
}
