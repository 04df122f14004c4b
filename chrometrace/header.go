package chrometrace

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A distributedInfo is torch.distributed's description of the process.
type distributedInfo struct {
	Backend   string          `json:"backend"`
	Rank      number          `json:"rank"`
	WorldSize number          `json:"world_size"`
	Groups    json.RawMessage `json:"pg_config"` // a list; see hostGroup
}

// hostGroup returns the number of ranks that communicate between their hosts by gloo; 0 if that is unknown, or
// if there are several groups of several ranks. It ignores errors, as nothing else uses these fields.
func (d *distributedInfo) hostGroup() int32 {
	var groups []struct {
		Backend string  `json:"backend_config"` // "cpu:gloo,cuda:nccl"
		Ranks   []int32 `json:"ranks"`
	}
	if json.Unmarshal(d.Groups, &groups) != nil {
		return 0
	}
	var only []int32
	for _, g := range groups {
		switch {
		case len(g.Ranks) < 2 || !strings.Contains(g.Backend, "gloo"):
		case only == nil:
			only = g.Ranks
		case !slices.Equal(only, g.Ranks):
			return 0
		}
	}
	return int32(len(only))
}

// A number is a JSON number, the text of one, or null or "" if it is unknown.
type number struct {
	value      int32
	known, odd bool
}

func (n *number) UnmarshalJSON(text []byte) error {
	v, ok := jsonscan.Int(parse.Unquoted(text))
	n.known = ok && v >= 0 && v <= math.MaxInt32
	n.value, n.odd = int32(v), !n.known && string(text) != "null" && string(text) != `""`
	return nil
}

// readHeader adds a member of a document to m. It returns an error if the member is malformed.
func readHeader(m *profile.Meta, key string, value []byte) error {
	switch key {
	case "distributedInfo":
		var info distributedInfo
		err := json.Unmarshal(value, &info)
		m.Backend = cmp.Or(m.Backend, info.Backend)
		if m.Rank < 0 && info.Rank.known {
			m.Rank = info.Rank.value
		}
		if m.WorldSize < 0 && info.WorldSize.known {
			m.WorldSize = info.WorldSize.value
		}
		m.HostGroup = info.hostGroup()
		if info.Rank.odd || info.WorldSize.odd {
			err = errors.New("rank or world_size is not a number")
		}
		return err
	case "deviceProperties", "computeProperties":
		var devices []device
		err := json.Unmarshal(value, &devices)
		for _, d := range devices {
			m.Devices = append(m.Devices, profile.Device{ID: d.ID, Name: d.name()})
		}
		return err
	case "host_name":
		if m.Host == "" {
			m.Host = string(jsonscan.Unescape(nil, parse.Unquoted(value)))
		}
		return nil
	case "baseTimeNanoseconds":
		return nil
	}
	isKey := func(a trace.Attribute) bool { return a.Key == key }
	if value[0] == '{' || value[0] == '[' || slices.ContainsFunc(m.Attributes, isKey) {
		return nil
	}
	text := parse.Unquoted(value)
	if value[0] == '"' {
		text = jsonscan.Unescape(nil, text)
	}
	m.Attributes = append(m.Attributes, trace.Attribute{Key: key, Value: string(text)})
	return nil
}

// ownBase returns the base time from a metadata object of our writer.
func ownBase(value []byte) (ns int64, ok bool) {
	var metadata struct {
		Base string `json:"base_time_ns"`
	}
	if json.Unmarshal(value, &metadata) != nil {
		return 0, false
	}
	ns, ok = jsonscan.Int([]byte(metadata.Base))
	return ns, ok && parse.IsTime(trace.Time(ns))
}

// A device is an entry of the header's list of devices.
type device struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Major  int    `json:"computeMajor"`
	Minor  int    `json:"computeMinor"`
	Units  int    `json:"numSms"`
	Memory int64  `json:"totalGlobalMem"`
}

// name returns the name of the device. Some builds of ROCm leave that out: among gfx942 devices with 304
// compute units, an MI300X has 192 GiB, and an MI325X has 256.
func (d *device) name() string {
	const gib = 1 << 30
	switch {
	case d.Name != "" || d.Major != 9 || d.Minor != 4 || d.Units != 304:
		return d.Name
	case d.Memory > 180*gib && d.Memory <= 192*gib:
		return "AMD Instinct MI300X"
	case d.Memory > 240*gib && d.Memory <= 256*gib:
		return "AMD Instinct MI325X"
	}
	return ""
}
