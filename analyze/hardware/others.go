package hardware

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// otherDevices are what hosts report of devices without an Xid, by how it begins.
var otherDevices = []string{"RDMA device ", "the link of network device ", "network device ", "PCIe error ", "the machine reports ", "the clocks of GPU ", "memory of GPU ", "the driver asks of GPU ", "the driver cannot start GPU ",
	"page fault of GPU ", "hang of GPU ", "hang of a GPU ", "reset of GPU ", "uncorrectable errors of GPU "} // of AMD

// isOther reports whether a text is about such a device.
func isOther(text string) bool {
	return slices.ContainsFunc(otherDevices, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// faults returns findings of network devices, of PCIe, and of machines: those of a host within a minute are one, and the
// first one leads.
func faults(set *series.Set) (list []finding.Finding) {
	const together = trace.Time(60e9)
	last := map[int32]int{} // finding of a place
	for i := range set.Instants {
		x := &set.Instants[i]
		text := set.Syms.Name(x.Text)
		if x.Kind != series.Hardware || !isOther(text) {
			continue
		}
		host := set.Servers[set.Places[x.Place].Server].Host
		if host != "" {
			text += " on " + host
		}
		if x.Time != 0 {
			text += " at " + words.At(x.Time, "15:04:05")
		}
		if x.Count > 1 {
			text += ", " + words.Counted(int(x.Count), "time")
		}
		if k, ok := last[x.Place]; ok && x.Time-list[k].Since <= together {
			list[k].Evidence = append(list[k].Evidence, finding.Sentence("with it: %s", text))
			continue
		}
		last[x.Place] = len(list)
		pos := set.Pos(x)
		list = append(list, finding.Finding{Subkind: "device", Since: x.Time, CostBasis: finding.GPUTime, Confidence: finding.Certain, At: place.Device(host), Text: text,
			Evidence: []finding.Evidence{finding.Sentence("%s:%d", pos.File, pos.Line)}})
	}
	return list
}
