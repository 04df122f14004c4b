package sglang

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// ExpertDump reads the output of SGLang's expert distribution recorder: the number of tokens of each
// expert (expert_distribution_recorder_*.pt, and the CSV files before 2025-05), and files with
// the locations of experts (--init-expert-location).
//
// # What is odd
//
//   - A .pt file is a zip archive of PyTorch: a pickle, and the numbers of each tensor in a file of their own. We read the
//     pickle as values, and call nothing. Files of PyTorch before 1.6 are not archives, and not read.
//   - Files of the mode stat have logical experts, and are summed over ranks. Their passes are places
//     in a ring buffer, and empty ones were never written.
//   - Files of the modes per_pass and per_token have physical experts, and are from one rank. Ranks that
//     share an attention all count the same tokens.
//   - Layers without experts have counts, which are 0.
//   - The time in a file name is the time of writing, and not that of the passes, which have no times.
//   - Files of the mode per_token contain the prompt (input_ids, positions), which we skip.
var ExpertDump = &format.Format{
	Name:   "SGLang expert distribution",
	Noun:   "expert distribution dump",
	Doc:    "tokens by expert, as SGLang's expert distribution recorder dumps them (expert_distribution_recorder_*.pt)",
	For:    "'sgtrace report --experts'",
	Sniff:  func(head []byte) bool { return isArchive(head) || isCSV(head) || isMap(head) },
	Index:  indexExperts,
	Aside:  true,
	OnDisk: true,
}

// expertKeys are the keys of dumps, at the top level or in their records.
var expertKeys = [][]byte{[]byte("logical_count"), []byte("physical_to_logical_map"), []byte("global_physical_count"), []byte("gatherer_key")}

func isArchive(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) && bytes.Contains(head[:min(len(head), 512)], []byte("/data.pkl")) &&
		slices.ContainsFunc(expertKeys, func(key []byte) bool { return bytes.Contains(head, key) })
}

const csvHeader = "layer_id,expert_id,count"

func isCSV(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(bytes.TrimRight(line, "\r ")) == csvHeader
}

func isMap(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head[:min(len(head), 256)], []byte(`"physical_to_logical_map"`))
}

// indexExperts reads a dump.
func indexExperts(in *format.Input, opt *format.Options) (*format.Source, error) {
	var d *recorder.ExpertDump
	err := in.Read(func(r io.Reader) (err error) {
		d, err = readExperts(r, in.Path)
		return err
	})
	if err != nil {
		if d == nil || len(d.Passes) == 0 {
			return nil, err
		}
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	nameExperts(d, in.Name)
	opt.Experts.Add(d)
	return &format.Source{}, nil
}

// readExperts reads a dump of any form, which is at path. On an error, it returns what it read so far.
func readExperts(r io.Reader, path string) (*recorder.ExpertDump, error) {
	all := bufio.NewReader(r)
	head, err := all.Peek(4)
	if err != nil {
		return nil, err
	}
	switch {
	case string(head[:2]) == "PK":
		f, err := os.Open(path) // its directory is at its end
		if err != nil {
			return nil, err
		}
		d, err := readArchive(f)
		return d, errors.Join(err, f.Close())
	case head[0] == 'l':
		return readCSV(all)
	}
	return readMap(all)
}

// expertNames match the names of dumps: the time, and the rank if they belong to one.
var expertNames = []*lazyregexp.Regexp{
	lazyregexp.New(`^expert_distribution_recorder_(?P<time>\d{9,11}(?:\.\d+)?)(?:_(?P<rank>\d+))?\.pt`),
	lazyregexp.New(`^expert_distribution_rank(?P<rank>\d+)_timestamp(?P<time>\d{9,11}(?:\.\d+)?)\.csv`),
}

// nameExperts sets what the name of a file shows.
func nameExperts(d *recorder.ExpertDump, name string) {
	d.File = name
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	for _, re := range expertNames {
		m := re.FindStringSubmatch(base)
		if m == nil {
			continue
		}
		whole, part, _ := strings.Cut(m[re.Compiled().SubexpIndex("time")], ".")
		s, _ := strconv.ParseInt(whole, 10, 64)
		ns, _ := strconv.ParseInt((part + "000000000")[:9], 10, 64)
		d.Time = trace.Time(s*1e9 + ns)
		if text := m[re.Compiled().SubexpIndex("rank")]; text != "" && d.Rank < 0 && (!d.Ring || d.Whole) {
			rank, err := strconv.ParseInt(text, 10, 31)
			if err == nil {
				d.Rank = int32(rank)
			}
		}
	}
}

// maxLayers and maxExperts are larger than in any model; a damaged file may have more.
const maxLayers, maxExperts = 1 << 12, 1 << 14

// shaped checks the shape of counts.
func shaped(layers, count int64) error {
	if layers <= 0 || count <= 0 || layers > maxLayers || count > maxExperts {
		return fmt.Errorf("has counts of %d layers of %d experts", layers, count)
	}
	return nil
}
