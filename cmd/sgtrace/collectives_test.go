package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

// Tables computed from collectives alone are the same when only collectives are read.
func TestTablesOfCollectivesAlone(t *testing.T) {
	dir := inputsIn(t, recorded(t, 5))
	tables := func(command string) map[string]string {
		var d struct {
			Tables []json.RawMessage
		}
		r := sgtrace(t, dir, strings.Fields(command)...)
		if r.status != exitOK {
			return nil
		}
		if err := json.Unmarshal([]byte(r.out), &d); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, raw := range d.Tables {
			var table struct{ Name string }
			if err := json.Unmarshal(raw, &table); err != nil {
				t.Fatal(err)
			}
			all[table.Name] = string(raw)
		}
		return all
	}
	const command = "report --by-rank --format json " + inputsName
	all := tables(command)
	if all["collectives.ranks"] == "" || all["gpu"] == "" {
		t.Fatalf("%d tables", len(all))
	}
	for _, r := range reports.All {
		for _, name := range r.CollectiveTables {
			if alone := tables(command + " --table " + name); alone[name] != all[name] || len(alone) > 1 {
				t.Errorf("%s: %d tables, %s\nwant %s", name, len(alone), alone[name], all[name])
			}
		}
	}
}
