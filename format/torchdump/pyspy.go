package torchdump

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// PySpy is dumps of py-spy: the stacks of the threads of processes, as text (py-spy dump) and as JSON
// (--json), with one or several processes per file. The logs of servers have such dumps among their lines: package
// serverlog reads these. Package logline parses the lines.
//
// # What is odd
//
//   - A dump has no time, and no rank except in the title of its process, "sglang::scheduler_TP3". The JSON form has neither.
//   - With --locals, values of variables follow, which may include prompts: none is read.
//   - The state of a thread is a guess from that of the operating system: a thread that waits for a device is often "active".
//   - With --subprocesses, blocks are separated by a line of dashes.
var PySpy = &format.Format{
	Name:  "py-spy",
	Noun:  "py-spy dump",
	Doc:   "where the threads of processes stand: 'py-spy dump', as text or with --json",
	For:   "'sgtrace report'",
	Sniff: sniffPySpy,
	Index: indexPySpy,
	Aside: true,
	Text:  true,
}

var (
	pySpyText = lazyregexp.New(`(?m)^Process \d+: .*\r?\nPython v\d`)
	// ofLog matches the stamp of a line of a log that contains a dump.
	ofLog = lazyregexp.New(`(?m)^.{0,200}\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`)
	// rankInFile matches a rank in the name of a file.
	rankInFile = lazyregexp.New(`(?i)rank[-_]?(\d{1,6})`)
)

func sniffPySpy(head []byte) bool {
	if trimmed := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return bytes.Contains(head, []byte(`"owns_gil"`)) && bytes.Contains(head, []byte(`"frames"`))
	}
	if !bytes.Contains(head, []byte("\nPython v")) {
		return false
	}
	at := pySpyText.FindIndex(head)
	return at != nil && !ofLog.Match(head[:at[0]])
}

// indexPySpy reads a file.
func indexPySpy(in *format.Input, opt *format.Options) (*format.Source, error) {
	set := recorder.NewInFlight(opt.Syms)
	err := in.Read(func(r io.Reader) error {
		all := bufio.NewReader(r)
		head, err := all.Peek(1)
		switch {
		case err != nil:
			return err
		case head[0] == '[':
			return readJSON(all, in.Name, set)
		}
		return readText(all, in.Name, set)
	})
	if err != nil {
		if len(set.Dumps) == 0 {
			return nil, err
		}
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	one := len(set.Dumps) == 1
	host := naming.ParseFile(in.Name).Host
	for _, d := range set.Dumps {
		d.Source = 0 // it has no times
		d.Host = host
		if m := rankInFile.FindStringSubmatch(in.Name); one && m != nil {
			n, _ := strconv.Atoi(m[1])
			d.Rank = int32(n)
		}
		opt.Flight.Add(d)
	}
	return &format.Source{}, nil
}

func readText(content io.Reader, name string, set *recorder.InFlight) error {
	r := logline.NewCollectiveReader(set, name, 0)
	around := logline.New()
	_, _, err := logline.Lines(content, func(b []byte, _ int64) {
		r.Spied(around.Bare(b), 0)
	})
	r.End()
	return err
}

// A pySpyThread is a thread in the JSON form. Values of variables are not read.
type pySpyThread struct {
	PID      int64  `json:"pid"`
	ID       uint64 `json:"thread_id"`
	Name     string `json:"thread_name"`
	Active   bool   `json:"active"`
	OwnsGIL  bool   `json:"owns_gil"`
	OSThread int64  `json:"os_thread_id"`
	Frames   []struct {
		Name     string `json:"name"`
		Filename string `json:"filename"`
		Short    string `json:"short_filename"`
		Line     int32  `json:"line"`
	} `json:"frames"`
	Process *struct {
		PID         int64  `json:"pid"`
		CommandLine string `json:"command_line"`
	} `json:"process_info"`
}

// readJSON reads a list of threads.
func readJSON(content io.Reader, name string, set *recorder.InFlight) error {
	j := json.NewDecoder(content)
	of := map[int64]*recorder.FlightDump{}
	_, _, err := jsonscan.Each(j, nil, func() error {
		var t pySpyThread
		if err := j.Decode(&t); err != nil {
			return err
		}
		addThread(order.Memo(of, t.PID, func() *recorder.FlightDump {
			d := &recorder.FlightDump{File: name, By: recorder.PySpy, Rank: recorder.Unknown, Of: trace.NoRank, PID: t.PID}
			set.Add(d)
			return d
		}), &t, set)
		return nil
	})
	for _, d := range set.Dumps {
		logline.MainFirst(d)
	}
	return err
}

// addThread adds a thread to the dump of its process.
func addThread(d *recorder.FlightDump, t *pySpyThread, set *recorder.InFlight) {
	const most = 512
	if len(d.Threads) == most {
		return
	}
	if p := t.Process; p != nil && d.Title == "" {
		d.Title = logline.ProcessTitle([]byte(p.CommandLine))
		d.Of = logline.RankIn(d.Title)
	}
	state := "idle"
	switch {
	case t.OwnsGIL:
		state = "active+gil"
	case t.Active:
		state = "active"
	}
	frames := make([]recorder.Frame, 0, len(t.Frames))
	for _, f := range t.Frames {
		file := cmp.Or(f.Short, f.Filename)
		frames = append(frames, recorder.Frame{Name: set.Syms.Intern(f.Name), File: set.Syms.Intern(file), Line: f.Line})
	}
	name := t.Name
	if t.OSThread != 0 && t.OSThread == t.PID {
		name = "MainThread" // threads that Python did not start have no name
	}
	logline.AddThread(d, recorder.Thread{Name: name, State: state}, frames)
}
