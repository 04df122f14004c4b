package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// A report is what bench needs of the program's JSON.
type report struct {
	Tables []struct {
		Rows []struct {
			From int64  `json:"from_unix_ns"`
			To   int64  `json:"to_unix_ns"`
			RID  string `json:"rid"`
		} `json:"rows"`
	} `json:"tables"`
}

// ask returns the first benchRow of the table that a command prints.
func (b *bench) ask(dir string, args ...string) (r report, err error) {
	cmd := exec.Command(b.program, append(args, "--quiet", "--format", "json")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	if len(r.Tables) == 0 || len(r.Tables[0].Rows) == 0 {
		return r, fmt.Errorf("%v printed no rows", args)
	}
	return r, nil
}

// window returns flags for a twelfth of what an input recorded, from its middle on.
func (b *bench) window(dir, input string) (string, error) {
	r, err := b.ask(dir, "report", "--table", "summary.load", input)
	if err != nil {
		return "", err
	}
	from, to := time.Unix(0, r.Tables[0].Rows[0].From), time.Unix(0, r.Tables[0].Rows[0].To)
	middle := from.Add(to.Sub(from) / 2)
	return fmt.Sprintf(" --from %s --to %s", middle.UTC().Format(time.RFC3339Nano), middle.Add(to.Sub(from)/12).UTC().Format(time.RFC3339Nano)), nil
}

// slowest returns the ID of the slowest request of a dump, of those that flags leave.
func (b *bench) slowest(dir, input string, flags ...string) (string, error) {
	r, err := b.ask(dir, append([]string{"requests", "--sort", "-e2e", "--limit", "1", input}, flags...)...)
	if err != nil {
		return "", err
	}
	return r.Tables[0].Rows[0].RID, nil
}
