package main

import "github.com/sgtrace/sgtrace/trace"

// diagnostics prints the table of messages.
func diagnostics() string {
	out := grid{heads: []string{"code", "severity", "says", "what to do"}}
	for _, m := range trace.Messages() {
		out.rows = append(out.rows, []string{"`" + m.Code + "`", m.Severity.String(), m.Shown(), m.Advice})
	}
	return out.String()
}
