//go:build linux

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// perHost is how many ranks share a host, all of one TP group.
const perHost = 8

// simulate writes the recordings of so many ranks, small ones, and the dump of their requests,
// and returns their size. A quarter of the hosts prefills.
func simulate(dir string, ranks int) (size int64, err error) {
	c := simulator.DefaultConfig(1)
	hosts := max(2, ranks/perHost)
	c.Prefill = simulator.Parallel{TP: perHost, PP: 1, DP: max(1, hosts/4)}
	c.Decode = simulator.Parallel{TP: perHost, PP: 1, DP: hosts - c.Prefill.DP}
	c.RanksPerHost, c.HostSkew = perHost, 300*time.Microsecond
	c.Requests, c.Rate = 30*hosts, 4*float64(hosts)
	run, err := simulator.Play(c)
	if err != nil {
		return 0, err
	}
	t := torch.DefaultConfig(run)
	t.To, t.Layers, t.Stacks, t.Shapes = t.From+250*time.Millisecond, 4, 0, false
	if err := golden.WriteDir(dir, run, &t, nil); err != nil {
		return 0, err
	}
	// What was planted is no input, which reports of folders would say.
	if err := os.Remove(filepath.Join(dir, "truth.json")); err != nil {
		return 0, err
	}
	return sizeOf(dir)
}

// sizeOf adds up the files below a folder.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
