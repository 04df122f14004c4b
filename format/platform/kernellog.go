package platform

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Kernel reads what a host says of its GPUs and of memory: dmesg, the journal, syslog, and
// the log of NVIDIA's fabric manager, which runs the NVSwitches. Errors of the driver (Xid), of
// switches (SXid), of the fabric manager, of network devices, and of PCIe, and processes that the kernel killed,
// are instants of a host; all other lines are passed over.
//
// # What is odd
//
//   - dmesg counts seconds since the host started: such lines have no time, and say so by 0.
//   - dmesg --time-format iso has a zone and no host.
//   - dmesg -T, syslog, and the journal have a wall clock without a zone; the last two without a year, too, which
//     is the last one before the file was written.
//   - That a GPU has fallen off the bus may be told without an Xid, in several lines of which the first names the
//     GPU: it counts as Xid 79, which says the same.
//   - The fabric manager has a wall clock without a zone, too. Its messages may go on in lines without
//     a stamp. What dmesg calls SXid is an "NVSwitch error" there.
//   - An Xid names the GPU by its PCI bus. Its pid and name are of who met it, often nvidia-smi.
//   - The name of a process is cut to 15 characters.
var Kernel = &format.Format{
	Name:   "kernel log",
	Noun:   "kernel log",
	Doc:    "errors of GPUs (Xid; page faults, hangs, and resets of AMD's), network devices, and PCIe, and killed processes in dmesg, the journal, or syslog; errors of NVIDIA's fabric manager",
	For:    "'sgtrace report'",
	Sniff:  isKernelLog,
	Index:  indexKernel,
	Series: true,
	Text:   true,
}

var (
	xid    = regexp.MustCompile(`NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): ([0-9]{1,4}),? ?(.*)`)
	sxid   = regexp.MustCompile(`SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): ([0-9]{1,6}),? ?(.*)`)
	lost   = regexp.MustCompile(`NVRM: The NVIDIA GPU ([0-9A-Fa-f:]+)\.[0-7]\b`)
	killed = regexp.MustCompile(`(Out|cgroup out) of memory: Killed process ([0-9]+) \(([^)]*)\)(?:.*? anon-rss:([0-9]{1,15})kB)?`)
	// started is how the log of a host begins.
	started = regexp.MustCompile(`^(?:<[0-9]+>)?\[ *[0-9]+\.[0-9]{6}\] (?:Linux version|Command line)`)
	// fabric is a message of the fabric manager: when, how bad, what.
	fabric = regexp.MustCompile(`(?m)^\[([A-Z][a-z][a-z] [ \d]\d \d{4} \d\d:\d\d:\d\d)\] \[([A-Z]+)\] \[tid \d+\] (.*)`)
	// nvswitch is such a message of a switch: how bad, the SXid, the bus, and where.
	nvswitch = regexp.MustCompile(`NVSwitch (fatal|non-fatal) error (\d{1,6}) .*pci bus id ([0-9A-Fa-f:.]+)(?:.*(port \d+))?`)
)

// isFabric is in every message of the fabric manager.
var isFabric = []byte("] [tid ")

func isKernelLog(head []byte) bool {
	return ofDevice(head) != "" || lost.Match(head) || xid.Match(head) || sxid.Match(head) ||
		bytes.Contains(head, []byte("Killed process")) && killed.Match(head) || started.Match(head) || bytes.Contains(head, isFabric) && fabric.Match(head)
}

// A fault is what lines say again and again.
type fault struct {
	place int32
	text  string
}

// indexKernel reads a log.
func indexKernel(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	f := opt.Series.Fill(in.Name, "kernel log")
	d := NewKernelReader(f, in)
	_, err = logline.Read(r, in.Name, opt.Diags, func(line []byte, n int64) {
		f.Source().Lines = int(n)
		d.Take(line, n)
	})
	d.Tell()
	if err != nil {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	return &format.Source{}, nil
}

// A KernelReader reads the lines of a kernel: a log of these, or those among others.
type KernelReader struct {
	*series.Filler
	in   *format.Input
	year int // of stamps without one; 0 is not known yet
	lost struct {
		bus  string // of the GPU that a line names which may have fallen off the bus
		line int
	}
	seen  map[fault]int // index into found
	found []found
}

// NewKernelReader returns a reader of lines of an input.
func NewKernelReader(f *series.Filler, in *format.Input) *KernelReader {
	return &KernelReader{Filler: f, in: in, seen: map[fault]int{}}
}

// OfKernel reports whether a line of a journal is one of the kernel.
func OfKernel(line []byte) bool {
	const looked = 200
	return bytes.Contains(line[:min(len(line), looked)], []byte(" kernel:")) || human.Match(line)
}

// A found is a fault, with when it came first, and how often it came.
type found struct {
	fault
	series.Instant
}

// Take reads a line, and reports whether it is looked for.
func (d *KernelReader) Take(line []byte, number int64) bool {
	n := int(number)
	kind, text := series.Hardware, ""
	switch {
	case bytes.Contains(line, isFabric):
		text = d.ofFabric(line)
	case bytes.Contains(line, []byte("SXid (")):
		if m := sxid.FindSubmatch(line); m != nil {
			text = words("SXid %s of switch %s", m)
		}
	case bytes.Contains(line, []byte("NVRM: The NVIDIA GPU")):
		if m := lost.FindSubmatch(line); m != nil {
			d.lost.bus, d.lost.line = string(m[1]), n
		}
	case bytes.Contains(line, []byte("fallen off the bus and is not responding")) && d.lost.bus != "" && n-d.lost.line <= 4:
		text = "Xid 79 of GPU " + d.lost.bus + ": GPU has fallen off the bus"
	case bytes.Contains(line, []byte("NVRM: Xid")):
		if m := xid.FindSubmatch(line); m != nil {
			text = words("Xid %s of GPU %s", m)
		}
	case bytes.Contains(line, []byte("Killed process ")):
		if m := killed.FindSubmatch(line); m != nil {
			whose := "the host"
			if m[1][0] == 'c' {
				whose = "its container"
			}
			kind, text = series.Crash, fmt.Sprintf("the kernel killed process %s (%s%s), as memory of %s ran out", m[2], m[3], had(m[4]), whose)
		}
	default:
		text = ofDevice(line)
	}
	if text == "" {
		return false
	}
	at, host, local := d.stamp(string(line[:min(len(line), 200)]))
	if local {
		d.Source().Zone.Local = true
	}
	place := d.Place(series.Place{Server: d.Server(series.Server{Host: host}), Rank: trace.NoRank, GPU: series.NoGPU})
	key := fault{place, text}
	if i, ok := d.seen[key]; ok {
		d.found[i].Count++
		return true
	}
	d.seen[key] = len(d.found)
	d.found = append(d.found, found{key, series.Instant{Time: at, Place: place, Kind: kind, Line: uint32(n), Count: 1}})
	return true
}

// had says how much memory a process had, given in kB of 1024 bytes: who was killed need not be who took it.
func had(kilobytes []byte) string {
	n, err := strconv.ParseInt(string(kilobytes), 10, 64)
	switch {
	case err != nil:
		return ""
	case n >= 1<<20:
		return fmt.Sprintf(", which had %.1f GiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf(", which had %d MiB", n>>10)
}

// ofFabric says what a message of the fabric manager reports, "" if that is no error; errors of
// switches as the kernel says them.
func (d *KernelReader) ofFabric(line []byte) string {
	const head, most = 200, 160
	m := fabric.FindSubmatch(line)
	if m == nil {
		return ""
	}
	at, _, _ := d.stamp(string(line[:min(len(line), head)]))
	d.Saw(at)
	d.Source().Zone.Local = true
	if level := string(m[2]); level != "ERROR" && level != "CRITICAL" && level != "FATAL" {
		return ""
	}
	message := m[3]
	if m = nvswitch.FindSubmatch(message); m == nil {
		return "fabric manager: " + strings.ToValidUTF8(string(message[:min(len(message), most)]), "")
	}
	bus := string(m[3])
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) == 8 { // the kernel writes four digits
		bus = strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	text := fmt.Sprintf("SXid %s of switch %s: %s", m[2], bus, m[1])
	if len(m[4]) > 0 {
		text += fmt.Sprintf(", %s", m[4])
	}
	return text
}

// words says what an error is, without who met it.
func words(format string, m [][]byte) string {
	text := fmt.Sprintf(format, m[2], m[1])
	about := string(m[3])
	for _, key := range []string{"pid=", "name=", "Ch ", "channel "} {
		if i := strings.Index(about, key); i >= 0 {
			if end := strings.Index(about[i:], ", "); end >= 0 {
				about = about[:i] + about[i+end+2:]
			} else {
				about = about[:i]
			}
		}
	}
	const most = 80
	about, _, _ = strings.Cut(about, " (0x") // registers
	if about = strings.Trim(about, " ,."); about == "" || len(about) > most {
		return text
	}
	return text + ": " + about
}

// Tell adds what was found: each once, with how often it came.
func (d *KernelReader) Tell() {
	for i := range d.found {
		d.Instant(d.found[i].Instant, d.found[i].text)
	}
}

var (
	rfc3339 = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)) (?:(\S+) kernel:)?`)
	human   = regexp.MustCompile(`^\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d \d{4})\]`)
	// bracketed is how Talos prints it: its host, the facility, and the level.
	bracketed = regexp.MustCompile(`^(?:([\w.-]+): kern: +\w+: )?\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\]`)
	syslog    = regexp.MustCompile(`^(\pL{3,5}\.?) ([ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (\S+) kernel:`)
)

// stamp returns when a line was written, 0 if it does not say, and by which host; local tells that the
// time is that of a wall clock.
func (d *KernelReader) stamp(line string) (at trace.Time, host string, local bool) {
	if m := rfc3339.FindStringSubmatch(line); m != nil {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
			if t, err := time.Parse(layout, strings.Replace(m[1], ",", ".", 1)); err == nil {
				return trace.Time(t.UnixNano()), m[2], false
			}
		}
		return 0, m[2], false
	}
	if m := human.FindStringSubmatch(line); m != nil {
		if t, err := time.Parse("Mon Jan _2 15:04:05 2006", m[1]); err == nil {
			return trace.Time(t.UnixNano()), "", true
		}
	}
	if m := fabric.FindStringSubmatch(line); m != nil {
		if t, err := time.Parse("Jan _2 2006 15:04:05", m[1]); err == nil {
			return trace.Time(t.UnixNano()), "", true
		}
	}
	if m := bracketed.FindStringSubmatch(line); m != nil {
		if t, err := time.Parse(time.RFC3339Nano, m[2]); err == nil {
			return trace.Time(t.UnixNano()), m[1], false
		}
	}
	if m := syslog.FindStringSubmatch(line); m != nil {
		t, err := time.Parse("_2 15:04:05", m[2])
		month := monthOf(m[1])
		if err != nil || month == 0 {
			return 0, m[3], false
		}
		if d.year == 0 {
			d.year = logline.LastYear(d.in.Path, month, t.Day())
			d.Set.Diags.Add(trace.LogNoYear.Of(d.in.Name, d.year))
		}
		return trace.Time(t.AddDate(d.year, int(month)-1, 0).UnixNano()), m[3], true
	}
	return 0, "", false
}
