package clocks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Given is what the user says about the clock of a host. An offset settles the clock; with only a drift,
// the offset is still searched for.
type Given struct {
	Host      string
	HasOffset bool
	Offset    int64 // ns ahead of the reference when its events begin
	DriftPPB  int64 // by how much the offset grows
}

// ParseGiven reads the values of --offset, "HOST=DURATION", and of --drift, "HOST=NUMBERppm".
func ParseGiven(offsets, drifts []string) (given []Given, err error) {
	of := func(host string) *Given {
		i := slices.IndexFunc(given, func(g Given) bool { return g.Host == host })
		if i < 0 {
			i = len(given)
			given = append(given, Given{Host: host})
		}
		return &given[i]
	}
	for _, text := range offsets {
		host, value, _ := strings.Cut(text, "=")
		d, err := time.ParseDuration(value)
		if host == "" || err != nil {
			return nil, fmt.Errorf("--offset %q: want HOST=DURATION, such as node1=+1.2ms", text)
		}
		g := of(host)
		g.HasOffset, g.Offset = true, int64(d)
	}
	for _, text := range drifts {
		host, value, _ := strings.Cut(text, "=")
		ppb, ok := parseDrift(value)
		if host == "" || !ok {
			return nil, fmt.Errorf("--drift %q: want HOST=DRIFT, such as node1=+12ppm", text)
		}
		of(host).DriftPPB = ppb
	}
	return given, nil
}

// maxDrift is the largest drift that [align.ClockFit] supports, in ppb.
const maxDrift = 1e8

// parseDrift parses "12ppm" or "-300ppb".
func parseDrift(text string) (ppb int64, ok bool) {
	number, isPPB := strings.CutSuffix(text, "ppb")
	unit := 1.0
	if !isPPB {
		number, ok = strings.CutSuffix(text, "ppm")
		if !ok {
			return 0, false
		}
		unit = 1e3
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(math.Abs(v*unit) <= maxDrift) { // false for NaN
		return 0, false
	}
	return int64(v * unit), true
}

// errNoHost is returned if the user named a host that no input is from.
var errNoHost = errors.New("no such host")
