package ranks

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
)

// Placements returns where each rank ran.
func (m *Assignment) Placements() []profile.Placement {
	homes := make([]profile.Placement, len(m.Tracks))
	for i, r := range m.Tracks {
		h := &homes[i]
		h.GPU = -1
		if r.Host != "" {
			h.Host = m.Names.Host(r.Host)
		}
		for _, c := range r.Captures {
			meta := &c.File.Meta
			for _, v := range meta.Versions() {
				if !slices.Contains(h.Versions, v) {
					h.Versions = append(h.Versions, v)
				}
			}
			h.Devices = max(h.Devices, len(meta.Devices))
			if meta.GPU < 0 || h.GPU >= 0 {
				continue
			}
			h.GPU = meta.GPU
			if k := slices.IndexFunc(meta.Devices, func(d profile.Device) bool { return d.ID == int64(h.GPU) }); k >= 0 {
				h.UUID = meta.Devices[k].UUID
			}
		}
	}
	return homes
}

// GPUs returns what the accelerators of each rank are called: "NVIDIA H100 80GB HBM3"; "" where
// no file tells, or some are called otherwise.
func (m *Assignment) GPUs() []string {
	names := make([]string, len(m.Tracks))
	for i, r := range m.Tracks {
		known, several := "", false
		for _, c := range r.Captures {
			for _, d := range c.File.Meta.Devices {
				several = several || known != "" && d.Name != known
				known = d.Name
			}
		}
		if !several {
			names[i] = known
		}
	}
	return names
}
