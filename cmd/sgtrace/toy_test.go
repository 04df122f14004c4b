package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	formats "github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// toyFormat is a format that exists only in this test: a line with a rank, then lines with a
// kernel, its start, and its duration in ns. A file may have several ranks. A folder of such files
// with a toy.index is one recording.
var toyFormat = &formats.Format{
	Name: "a toy", Doc: "kernels as text", For: "every command", Convert: "toy2perfetto", Noun: "toy recording", Text: true,
	Sniff:  func(head []byte) bool { return bytes.HasPrefix(head, []byte("toy of rank ")) },
	Folder: func(files []string) bool { return slices.Contains(files, "toy.index") },
	Index:  indexToy,
}

func indexToy(in *formats.Input, opt *formats.Options) (*formats.Source, error) {
	read := func(opt *formats.Options) ([]*profile.Profile, error) {
		var profiles []*profile.Profile
		ofRank := func(rank int32) *profile.Profile {
			for _, p := range profiles {
				if p.Meta.Rank == rank {
					return p
				}
			}
			p := &profile.Profile{Name: in.Name, Meta: profile.Meta{Rank: rank, WorldSize: 8, GPU: -1, Origin: profile.OriginUnix, PID: 7},
				Rows: []profile.Row{{Kind: profile.RowStream, PIDText: "0", TIDText: "7", TID: 7}}}
			profiles = append(profiles, p)
			return p
		}
		keeper := profile.NewKeeper(&opt.Filter, opt.Syms)
		parts := []func() (io.ReadCloser, error){in.Open}
		if in.Files != nil {
			parts = nil
			for _, name := range in.Files {
				if path.Ext(name) == ".toy" {
					parts = append(parts, func() (io.ReadCloser, error) { return os.Open(name) })
				}
			}
		}
		for _, open := range parts {
			r, err := open()
			if err != nil {
				return nil, err
			}
			var p *profile.Profile
			for lines := bufio.NewScanner(r); lines.Scan(); {
				var name string
				var rank int32
				s := profile.Slice{Cat: opt.Syms.Intern(profile.KernelCategory), Place: profile.KernelSlice.On(0)}
				if n, _ := fmt.Sscanf(lines.Text(), "toy of rank %d", &rank); n == 1 {
					p = ofRank(rank)
					continue
				}
				if _, err := fmt.Sscan(lines.Text(), &name, &s.Time, &s.Dur); err != nil {
					return nil, err
				}
				s.Name = opt.Syms.Intern(name)
				if p.Total++; p.Total == 1 {
					p.First = s.Time
				}
				p.Last = s.End()
				if keeper.Keeps(s.Cat, s.Name, s.Time, s.End()) {
					p.Events = append(p.Events, s)
				}
			}
			if err := r.Close(); err != nil {
				return nil, err
			}
		}
		return profiles, nil
	}
	profiles, err := read(opt)
	if err != nil {
		return nil, err
	}
	return &formats.Source{Profiles: profiles, Stream: read, Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
		v.AddProfiles(inventory.Trace{File: in.Name, Size: size, Producer: "a toy"}, profiles, are)
	}}, nil
}

// Adding a format takes one row in a table; every command then reads it.
func TestOneLineAddsAFormat(t *testing.T) {
	before := inputs.Formats
	t.Cleanup(func() { inputs.Formats = before })
	inputs.Formats = append(inputs.Formats[:len(before):len(before)], toyFormat)

	dir := t.TempDir()
	write := func(name string, first int, ranks ...int) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := ""
		for n, rank := range ranks {
			text += fmt.Sprintf("toy of rank %d\n", rank)
			for i := range 10 + n {
				text += fmt.Sprintf("my_gemm %d %d\n", 1_787_000_000_000_000_000+int64(first+i)*1000, 500+rank)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file := write("rank3.toy", 0, 3)
	several := write("several.toy", 0, 5, 6)
	write("folder/a.toy", 0, 4)
	write("folder/b.toy", 100, 4)
	if err := os.WriteFile(filepath.Join(dir, "folder", "toy.index"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect", file, "folder"}, "rank 4"},
		{[]string{"inspect", "--format", "csv", "--table", "processes", several}, "rank 6"},
		{[]string{"report", "--kernels", file}, "my_gemm"},
		{[]string{"report", "--kernels", "--format", "csv", file, "folder"}, ",30,"},
		{[]string{"report", "--by-rank", file, "folder"}, "rank 3"},
		{[]string{"report", file}, "rank 3"},
		{[]string{"merge", file, "folder", "-o", "merged.pftrace", "--verify"}, "62 slices"},
		{[]string{"merge", "folder", "--from", "+50us", "-o", "part.pftrace"}, "22 slices"},
		{[]string{"merge", several, "-o", "several.pftrace"}, " 44 slices"},
		{[]string{"merge", several, "--from", "+4us", "-o", "several.pftrace"}, " 28 slices"}, // 6 and 7 kernels
		{[]string{"merge", several, "--min-dur", "506ns", "-o", "several.pftrace"}, " 22 slices"},
		{[]string{"convert", "toy2perfetto", file, "-o", "out.json"}, "22 slices"},
		{[]string{"convert", "--help"}, "toy2perfetto"},
	} {
		r := sgtrace(t, dir, test.args...)
		if r.status != exitOK || !strings.Contains(r.out+r.err, test.want) {
			t.Errorf("%s: status %d, want %q in\n%s%s", strings.Join(test.args, " "), r.status, test.want, r.out, r.err)
		}
	}
}

// toyLog is a log that exists only in this test: lines with a stamp, and with the load of a server.
var toyLog = &formats.Format{
	Name: "a toy log", Noun: "toy log", Doc: "load as text", For: "'sgtrace report'", Series: true, Text: true,
	Sniff: func(head []byte) bool { return bytes.Contains(head, []byte(" toy: running ")) },
	Index: func(in *formats.Input, opt *formats.Options) (*formats.Source, error) {
		content, err := in.Open()
		if err != nil {
			return nil, err
		}
		f, around := opt.Series.Fill(in.Name, "toy log"), logline.New()
		place := f.Place(series.Place{Server: f.Server(series.Server{Name: in.Name, Engine: "Toy"}), Rank: trace.NoRank, GPU: series.NoGPU})
		src := f.Source()
		src.Zone.By = "stamps with a zone"
		src.Bytes, err = logline.Read(content, in.Name, opt.Diags, func(line []byte, n int64) {
			src.Lines = int(n)
			f.Line(n)
			rest := around.Bare(line)
			at, length, ok := around.Outer.Zoned(rest)
			if !ok {
				return
			}
			for _, x := range [...]struct {
				key    string
				metric series.MetricID
			}{{" running ", series.Running}, {" queued ", series.Queued}} {
				if v, ok := logline.After(rest[length:], x.key); ok {
					f.Add(f.Series(x.metric, place), at, v)
				}
			}
			src.Read++
		})
		return &formats.Source{}, err
	},
}

// A log of servers takes one row, too.
func TestOneLineAddsALog(t *testing.T) {
	before := inputs.Formats
	t.Cleanup(func() { inputs.Formats = before })
	inputs.Formats = append(inputs.Formats[:len(before):len(before)], toyLog)
	dir := t.TempDir()
	text := ""
	for i := range 60 {
		text += fmt.Sprintf("2026-08-17T20:53:%02d.000Z toy: running %d queued %d\n", i, 5+i%3, i%2)
	}
	if err := os.WriteFile(filepath.Join(dir, "toy.log"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"inspect toy.log", "toy log"},
		{"report toy.log", "at most 7 running, 1 waiting"},
		{"report --timeline toy.log", "queued"},
	} {
		r := sgtrace(t, dir, strings.Fields(test.args)...)
		if r.status != exitOK || !strings.Contains(r.out+r.err, test.want) {
			t.Errorf("%s: status %d, want %q in\n%s%s", test.args, r.status, test.want, r.out, r.err)
		}
	}
}
