package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// Weeks simulates the files of a fleet of servers over weeks: each day, a short run of all of them is traced and recorded
// with Nsight Systems. One GPU is slow on some days, and on one day a new driver and release make steps longer.
type Weeks struct {
	Seed    uint64
	Days    int
	Start   time.Time // start of the first day's run
	Servers int       // each on a host of its own
	GPUs    int       // per server, one TP group
	// Recorded is how much of each day's GPU activity is recorded.
	Recorded time.Duration
	// SlowServer and SlowGPU select the slow GPU. It is slow on each SlowEvery-th day, by SlowFactor.
	SlowServer, SlowGPU, SlowEvery int
	SlowFactor                     float64
	// ChangeDay is the day, counted from 0, from which on the versions are new and steps take ChangePace times as long.
	ChangeDay  int
	ChangePace float64
}

// Releases and Drivers are the versions before ChangeDay, and from then on.
var (
	Releases = [2]string{"0.5.2", "0.5.3"}
	Drivers  = [2]string{"550.54.15", "570.86.10"}
)

// DefaultWeeks has this many days and servers. The change comes in the middle.
func DefaultWeeks(days, servers int) Weeks {
	return Weeks{Seed: 1, Days: days, Start: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Servers: servers, GPUs: 4, Recorded: 300 * time.Millisecond,
		SlowServer: servers / 2, SlowGPU: 2, SlowEvery: 3, SlowFactor: 1.3, ChangeDay: days / 2, ChangePace: 1.1}
}

// isSlow reports whether the GPU is slow on a day.
func (c *Weeks) isSlow(day int) bool { return c.SlowEvery > 0 && day%c.SlowEvery == 0 }

// DayDir returns the folder of a day.
func DayDir(dir string, day int) string { return filepath.Join(dir, fmt.Sprintf("day%02d", day)) }

// WriteDay writes what one day leaves behind into its folder.
func (c *Weeks) WriteDay(dir string, day int) error {
	version := 0
	s := simulator.DefaultConfig(c.Seed + uint64(day))
	s.Mode, s.Unified, s.RanksPerHost = simulator.Unified, simulator.Parallel{TP: c.GPUs, PP: 1, DP: c.Servers}, c.GPUs
	s.Start = c.Start.AddDate(0, 0, day)
	s.Requests, s.Rate, s.Level = 16*c.Servers, 4*float64(c.Servers), 2
	s.Incident, s.SlowTransfers, s.FailedTransfers, s.Cancels, s.Impatient = simulator.Incident{Onset: 0.5}, 0, 0, 0, 0
	s.Straggler = simulator.Straggler{}
	if c.isSlow(day) {
		s.Straggler = simulator.Straggler{DP: c.SlowServer, TP: c.SlowGPU, Factor: c.SlowFactor}
	}
	if day >= c.ChangeDay {
		version, s.Pace = 1, c.ChangePace
	}
	s.Release = Releases[version]
	run, err := simulator.Play(s)
	if err != nil {
		return err
	}
	exports := nsys.DefaultConfig(run)
	exports.Torch.From = time.Second
	exports.Torch.To, exports.Torch.Layers = exports.Torch.From+c.Recorded, 4
	exports.Torch.Stacks, exports.Torch.Shapes = 0, false
	exports.MetricHz, exports.System, exports.Driver = 0, false, Drivers[version]
	return WriteDir(DayDir(dir, day), run, nil, &exports)
}

// Truth is the content of truth.json: the truth about a run, and the content of its recordings, if it was recorded.
type Truth struct {
	simulator.Truth
	Torch *torch.Truth `json:"torch,omitempty"`
	Nsys  *nsys.Truth  `json:"nsys,omitempty"`
}

// WriteDir writes the run into a directory, which it creates if necessary: otel.jsonl and truth.json, and, if they are
// configured, PyTorch traces and Nsight Systems exports in the folders torch and nsys, whose content truth.json then
// includes. It overwrites files with these names.
func WriteDir(dir string, r *simulator.Run, traces *torch.Config, exports *nsys.Config) (err error) {
	truth := Truth{Truth: *r.Truth()}
	if traces != nil {
		if truth.Torch, err = torch.WriteDir(dir, r, *traces); err != nil {
			return err
		}
	}
	if exports != nil {
		if truth.Nsys, err = nsys.WriteDir(dir, r, *exports); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("creating the output directory: %w", err)
	}
	if err := simulator.WriteFile(filepath.Join(dir, "otel.jsonl"), func(w io.Writer) error { return otlp.Write(w, r) }); err != nil {
		return err
	}
	return simulator.WriteFile(filepath.Join(dir, "truth.json"), func(w io.Writer) error { return json.NewEncoder(w).Encode(truth) })
}
