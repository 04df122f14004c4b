package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A cost is what a run of a command took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes, of the largest process
}

func (c cost) String() string {
	return fmt.Sprintf("%s, %s, %d MB", seconds(c.wall), seconds(c.cpu), c.peak/1e6)
}

// seconds prints two digits of a duration, at least.
func seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// best runs a command several times and returns the cost of the fastest run. One that takes more
// than ten seconds runs half as often.
func (b *bench) best(dir, shell string) (best cost, err error) {
	for i := 0; i < b.runs; i++ {
		c, err := b.once(dir, shell)
		if err != nil {
			return best, err
		}
		if i == 0 || c.wall < best.wall {
			best = c
		}
		if c.wall > 10*time.Second {
			i++
		}
	}
	return best, nil
}

// once runs a command. Status 3 is fine: windows cut requests off.
func (b *bench) once(dir, shell string) (cost, error) {
	cmd := exec.Command("sh", "-c", shell)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SGTRACE="+b.program)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		return cost{}, fmt.Errorf("%s: %v\n%s", shell, err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cost{wall, cpu, used.Maxrss * 1024}, nil
}
