package platform

import (
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Kernel reads the logs of a host about its GPUs and memory: dmesg, the journal, syslog, and
// the log of NVIDIA's fabric manager, which runs the NVSwitches. Errors of the driver (Xid), of
// switches (SXid), of the fabric manager, of network devices, and of PCIe, and processes that the kernel killed
// become instants of the host; all other lines are ignored.
//
// # What is odd
//
//   - dmesg counts seconds since the host started: the time of such lines is unknown, 0.
//   - dmesg --time-format iso has a zone and no host. dmesg --decode writes the facility and the level before that.
//   - Lines of /dev/kmsg begin with numbers, "6,3964,206764307,-;", and count microseconds since the host started. After a panic,
//     pstore has the newest part first, "Panic#1 Part1", and no time either.
//   - dmesg -T, syslog, and the journal have local time without a zone; the last two also lack the year, which
//     is the latest possible one before the file was written.
//   - A GPU that has fallen off the bus may be reported without an Xid, in several lines, the first of which names the
//     GPU: it counts as Xid 79, which has the same meaning.
//   - The fabric manager has local time without a zone, too. Its messages may continue in lines without
//     a stamp. An SXid in dmesg is an "NVSwitch error" there.
//   - An Xid names the GPU by its PCI bus. Its pid and name are those of the process that hit it, often nvidia-smi.
//   - The name of a process is cut to 15 characters.
var Kernel = &format.Format{
	Name:   "kernel log",
	Noun:   "kernel log",
	Doc:    "errors of GPUs (Xid; page faults, hangs, and resets of AMD's), network devices, PCIe, and the host, panics, and killed, crashed, or hanging processes in dmesg, /dev/kmsg, pstore, the journal, or syslog; errors of NVIDIA's fabric manager",
	For:    "'sgtrace report'",
	Sniff:  logline.IsKernelLog,
	Index:  indexKernel,
	Series: true,
	Text:   true,
}

// A fault is the part of a fault that repeated lines have in common.
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
	kernel, seen := logline.Kernel{Path: in.Path}, map[fault]int{}
	var list []found
	_, err = logline.Read(r, in.Name, opt.Diags, func(line []byte, n int64) {
		src := f.Source()
		src.Lines = int(n)
		x, ok := kernel.Read(line, int(n))
		src.Zone.Local = src.Zone.Local || x.Local
		if !ok {
			f.Saw(x.At)
			return
		}
		place := f.Place(series.Place{Server: f.Server(series.Server{Host: x.Host}), Rank: trace.NoRank, GPU: series.NoGPU})
		key := fault{place, x.Text}
		if i, ok := seen[key]; ok {
			if !x.More {
				list[i].Count++
			}
			return
		}
		seen[key] = len(list)
		list = append(list, found{key, series.Instant{Time: x.At, Place: place, Kind: kindOf(&x), Line: uint32(n), Count: 1}})
	})
	for i := range list { // each once, with its number
		f.Instant(list[i].Instant, list[i].text)
	}
	if kernel.Year != 0 {
		opt.Diags.Add(trace.LogNoYear.Of(in.Name, kernel.Year))
	}
	if err != nil {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	return &format.Source{}, nil
}

// A found is a fault, with its first time and its number.
type found struct {
	fault
	series.Instant
}

// kindOf returns the kind of instant for a fault.
func kindOf(x *logline.KernelFault) series.InstantKind {
	if x.Killed {
		return series.Crash
	}
	return series.Hardware
}
