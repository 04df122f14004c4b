package logline

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

var (
	xid    = lazyregexp.New(`NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): ([0-9]{1,4}),? ?(.*)`)
	sxid   = lazyregexp.New(`SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): ([0-9]{1,6}),? ?(.*)`)
	lost   = lazyregexp.New(`NVRM: The NVIDIA GPU ([0-9A-Fa-f:]+)\.[0-7]\b`)
	killed = lazyregexp.New(`(Out|cgroup out) of memory: Killed process ([0-9]+) \(([^)]*)\)(?:.*? anon-rss:([0-9]{1,15})kB)?`)
	// started matches the beginning of a host's kernel log, or of its copy in pstore or /dev/kmsg.
	started = lazyregexp.New(`^(?:<[0-9]+>)?\[ *[0-9]+\.[0-9]{6}\] (?:Linux version|Command line)|^(?:dmesg-\S{1,60}\n)?(?:Panic|Oops)#\d+ Part\d+\r?\n|^\d{1,3},\d+,\d+,[-a-z,=:+0-9]{1,40};`)
	// undecoded matches what dmesg --decode and /dev/kmsg put before a line: the facility and the level, or a
	// number for both.
	undecoded = lazyregexp.New(`^(?:[a-z0-9]+ *:[a-z]+ *: |\d{1,3},\d+,\d+,[-a-z,=:+0-9]{1,40};)`)
	// fabric matches a message of the fabric manager: time, level, text.
	fabric = lazyregexp.New(`(?m)^\[([A-Z][a-z][a-z] [ \d]\d \d{4} \d\d:\d\d:\d\d)\] \[([A-Z]+)\] \[tid \d+\] (.*)`)
	// nvswitch matches the fabric manager's message about a switch: severity, SXid, bus, and port.
	nvswitch = lazyregexp.New(`NVSwitch (fatal|non-fatal) error (\d{1,6}) .*pci bus id ([0-9A-Fa-f:.]+)(?:.*(port \d+))?`)
)

// isFabric is in every message of the fabric manager.
var isFabric = []byte("] [tid ")

// IsKernelLog reports whether a text has a line of a kernel, or of the fabric manager, about a fault, or begins
// as dmesg does.
func IsKernelLog(head []byte) bool {
	says, _ := ofDevice(head)
	return says != "" || lost.Match(head) || xid.Match(head) || sxid.Match(head) ||
		bytes.Contains(head, []byte("Killed process")) && killed.Match(head) || started.Match(head) || bytes.Contains(head, isFabric) && fabric.Match(head)
}

// IsKernelLine reports whether a line of a journal is from the kernel.
func IsKernelLine(line []byte) bool {
	const looked = 200
	before, _, ok := bytes.Cut(line[:min(len(line), looked)], []byte(" kernel:"))
	return ok && !bytes.Contains(before, []byte(": ")) || human.Match(line) // after ": ", a message means a kernel of a GPU
}

// A Kernel reads the lines of a kernel, in a log of its own or among others.
type Kernel struct {
	Path string // of the file
	// Year is the year for stamps without one: the latest possible before the file was written; 0 if no such stamp
	// was read.
	Year int
	lost struct {
		bus  string // of the GPU in a line that may have fallen off the bus
		line int
	}
}

// A KernelFault is what a line reports about a GPU, a switch, a network device, PCIe, or a killed process.
type KernelFault struct {
	At     trace.Time // Unix ns; 0 is unknown
	Host   string     // "" is unknown
	Text   string
	Local  bool // At is local, without a zone
	Killed bool // a process was killed
	More   bool // continues the report of an earlier line, unless that is missing
}

// Read parses a line; ok is false if it reports no known fault, though its time is remembered.
func (k *Kernel) Read(line []byte, n int) (x KernelFault, ok bool) {
	switch {
	case bytes.Contains(line, isFabric):
		x.Text = ofFabric(line)
	case bytes.Contains(line, []byte("SXid (")):
		if m := sxid.FindSubmatch(line); m != nil {
			x.Text = faultWords("SXid %s of switch %s", m)
		}
	case bytes.Contains(line, []byte("NVRM: The NVIDIA GPU")):
		if m := lost.FindSubmatch(line); m != nil {
			k.lost.bus, k.lost.line = string(m[1]), n
		}
	case bytes.Contains(line, []byte("fallen off the bus and is not responding")) && k.lost.bus != "" && n-k.lost.line <= 4:
		x.Text = "Xid 79 of GPU " + k.lost.bus + ": GPU has fallen off the bus"
	case bytes.Contains(line, []byte("NVRM: Xid")):
		if m := xid.FindSubmatch(line); m != nil {
			x.Text = faultWords("Xid %s of GPU %s", m)
		}
	case bytes.Contains(line, []byte("Killed process ")):
		if m := killed.FindSubmatch(line); m != nil {
			whose := "the host"
			if m[1][0] == 'c' {
				whose = "its container"
			}
			x.Killed, x.Text = true, fmt.Sprintf("the kernel killed process %s (%s%s), because %s ran out of memory", m[2], m[3], had(m[4]), whose)
		}
	default:
		x.Text, x.More = ofDevice(line)
	}
	if x.Text == "" && !bytes.Contains(line, isFabric) {
		return x, false
	}
	const looked = 200
	x.At, x.Host, x.Local = k.stamp(string(line[:min(len(line), looked)]))
	return x, x.Text != ""
}

// had returns the memory that a process had, given in kB of 1024 bytes: the killed process need not be the one
// that took most.
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

// ofFabric returns what a message of the fabric manager reports, "" if that is not an error; it words errors of
// switches like the kernel.
func ofFabric(line []byte) string {
	const most = 160
	m := fabric.FindSubmatch(line)
	if m == nil {
		return ""
	}
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

// faultWords describes an error, without the process that hit it.
func faultWords(format string, m [][]byte) string {
	text := fmt.Sprintf(format, m[2], m[1])
	about := string(m[3])
	if i := strings.Index(about, "caused by previous Xid "); i >= 0 {
		about = about[i:]
	}
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
	about, _, _ = strings.Cut(about, " (0x") // registers follow
	if about = strings.Trim(about, " ,."); about == "" || len(about) > most {
		return text
	}
	return text + ": " + about
}

var (
	rfc3339 = lazyregexp.New(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)) (?:(\S+) kernel:)?`)
	human   = lazyregexp.New(`^\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d \d{4})\]`)
	// bracketed matches the prefix of Talos: its host, the facility, and the level.
	bracketed = lazyregexp.New(`^(?:([\w.-]+): kern: +\w+: )?\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\]`)
	syslog    = lazyregexp.New(`^(\pL{3,5}\.?) ([ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (\S+) kernel:`)
)

// stamp returns the time of a line, 0 if it has none, and the host; local means that the time is local.
func (k *Kernel) stamp(line string) (at trace.Time, host string, local bool) {
	line = line[len(undecoded.FindString(line)):]
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
		at, ok := k.wall(m[1], m[2])
		return at, m[3], ok
	}
	return 0, "", false
}

// wall returns a local time without a year: the latest possible before the file was written.
func (k *Kernel) wall(name, rest string) (at trace.Time, ok bool) {
	t, err := time.Parse("_2 15:04:05", rest)
	month := monthOf(name)
	if err != nil || month == 0 {
		return 0, false
	}
	if k.Year == 0 {
		k.Year = LastYear(k.Path, month, t.Day())
	}
	return trace.Time(t.AddDate(k.Year, int(month)-1, 0).UnixNano()), true
}

// ofProgram matches the stamp that the journal and syslog put before lines of any program.
var ofProgram = lazyregexp.New(`^(\pL{3,5}\.?) ([ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) `)

// Wall returns the time of a line of any program, on the local clock of its host.
func (k *Kernel) Wall(line []byte) (at trace.Time, ok bool) {
	m := ofProgram.FindSubmatch(line)
	if m == nil {
		return 0, false
	}
	return k.wall(string(m[1]), string(m[2]))
}
