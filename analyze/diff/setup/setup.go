// Package setup describes how captures were made, and what they are of: the model, the ranks,
// and the software. It compares that between two sides.
package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// A Setting is one fact about how a capture was made, or what it is of, as each capture states it.
type Setting struct{ Name, Before, After string }

// Layout is the name of the setting with the number of ranks of each role.
const Layout = "layout"

// Names of settings that decide which spans are recorded.
const (
	services   = "services"
	spanLayout = "span layout"
	traceLevel = "trace level"
)

// Recorded are the settings that decide which spans are recorded.
var Recorded = []string{services, spanLayout, traceLevel}

// Of lists the setup of a capture in display order, without what the capture doesn't say; only Before is set. ranks is
// the number of ranks with profiled work, since a machine has a hundred other processes. requests and files may be nil.
func Of(requests *request.Set, files *inventory.Inventory, ranks int) []Setting {
	var list []Setting
	add := func(name string, values ...string) {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if values = order.Distinct(values); len(values) > 0 {
			list = append(list, Setting{Name: name, Before: strings.Join(values, ", ")})
		}
	}
	if requests != nil {
		describeRequests(requests, add)
	}
	if files != nil {
		describeFiles(files, add)
	}
	if ranks > 0 {
		add("profiled ranks", fmt.Sprint(ranks))
	}
	return list
}

// Join merges the settings of several captures of one side; values that they agree on appear once.
func Join(all, more []Setting) []Setting {
	for _, s := range more {
		i := slices.IndexFunc(all, func(known Setting) bool { return known.Name == s.Name })
		switch {
		case i < 0:
			all = append(all, s)
		case !slices.Contains(strings.Split(all[i].Before, apart), s.Before):
			all[i].Before += apart + s.Before
		}
	}
	return all
}

// apart separates the values that captures of one side have for a setting.
const apart = " or "

// describeRequests adds the setup of the servers that answered requests.
func describeRequests(s *request.Set, add func(name string, values ...string)) {
	var models, named, software, layouts []string
	for i := range s.AllParts() {
		models = append(models, s.Syms.Name(s.Parts[i].Model))
	}
	for i := range s.Writers {
		w := &s.Writers[i]
		named = append(named, s.Syms.Name(w.Service))
		software = append(software, strings.TrimSpace(w.SDK+" "+w.Version))
		layouts = append(layouts, w.Layouts.String())
	}
	add("model", models...)
	add(Layout, deployment(s)...)
	add(services, named...)
	add("telemetry SDK", software...)
	add(spanLayout, layouts...)
	level := uint8(0)
	for i := range s.All() {
		level = max(level, s.Rows[i].Level)
	}
	if level > 0 {
		add(traceLevel, fmt.Sprint(level))
	}
}

// deployment returns the number of schedulers of each role along each parallel dimension: "decode TP2 DP2 on 1 host".
func deployment(s *request.Set) []string {
	type size struct {
		parts [4]map[int16]bool
		hosts map[string]bool
	}
	roles := map[request.Role]*size{}
	for i := range s.Procs {
		p := &s.Procs[i]
		if !p.Schedules {
			continue
		}
		of := order.Memo(roles, p.Role, func() *size { return &size{hosts: map[string]bool{}} })
		of.hosts[p.Host] = true
		for k, n := range [...]int16{p.Rank.TP, p.Rank.PP, p.Rank.DP, p.Rank.EP} {
			if of.parts[k] == nil {
				of.parts[k] = map[int16]bool{}
			}
			of.parts[k][n] = n >= 0
		}
	}
	var list []string
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		text := role.String()
		for k, name := range [...]string{"TP", "PP", "DP", "EP"} {
			if n := len(roles[role].parts[k]); roles[role].parts[k][0] && (n > 1 || name == "TP") {
				text += fmt.Sprintf(" %s%d", name, n)
			}
		}
		list = append(list, text+" on "+words.Counted(len(roles[role].hosts), "host"))
	}
	return list
}

// describeFiles adds the setup recorded in profiler files.
func describeFiles(v *inventory.Inventory, add func(name string, values ...string)) {
	var profilers, drivers, runtimes, backends, recorded, graphs, worlds, devices []string
	for i := range v.Exports {
		profilers = append(profilers, strings.TrimSpace("Nsight Systems "+v.Exports[i].Product))
		graphs = append(graphs, v.Exports[i].GraphMode)
		drivers = append(drivers, v.Exports[i].Driver)
	}
	for i := range v.Traces {
		t := &v.Traces[i]
		profilers = append(profilers, t.Producer)
		runtimes, backends, recorded = append(runtimes, t.Runtime), append(backends, t.Backend), append(recorded, t.Recorded)
	}
	for i := range v.Processes {
		if w := v.Processes[i].World; w > 0 {
			worlds = append(worlds, fmt.Sprint(w))
		}
	}
	for i := range v.Devices {
		devices = append(devices, v.Devices[i].Name)
	}
	add("devices", devices...)
	add("driver", drivers...)
	add("runtime", runtimes...)
	add("backend of collectives", backends...)
	add("ranks of the job", worlds...)
	add("profiler", profilers...)
	add("recorded besides events", recorded...)
	add("CUDA graphs traced by", graphs...)
}

// Compare returns the settings that both captures state, with different values.
func Compare(before, after []Setting) []Setting {
	var out []Setting
	for _, b := range before {
		i := slices.IndexFunc(after, func(a Setting) bool { return a.Name == b.Name })
		if i >= 0 && after[i].Before != b.Before {
			out = append(out, Setting{b.Name, b.Before, after[i].Before})
		}
	}
	return out
}

// Report returns a table of the settings that differ.
func Report(differ []Setting) *table.Table {
	return table.New("sgtrace.report.diff.setup/v1", "Setup", differ, []table.Field[Setting]{
		table.TextColumn("of", "setting that differs between the captures", func(s *Setting) string { return s.Name }),
		table.TextColumn("before", "value, as the capture records it", func(s *Setting) string { return s.Before }),
		table.TextColumn("after", "value, as the capture records it", func(s *Setting) string { return s.After }),
	})
}
