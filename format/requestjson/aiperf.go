package requestjson

import (
	"bytes"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// aiperf reads a record of AIPerf: a request as its client saw it.
func (r *clientReader) aiperf(b []byte) bool {
	row := spantable.NewRequestRecord()
	row.Who, row.Line = spantable.Client, uint32(r.at)
	var start, end trace.Time
	latency := int64(spantable.Unknown)
	failed, canceled := "", false
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		switch string(key) {
		case "metadata":
			jsonscan.Members(value, 0, func(key, value []byte) {
				switch string(key) {
				case "x_request_id":
					row.ID = r.rows.Text(jsonscan.Quoted(value))
				case "request_start_ns", "timestamp_ns":
					start = trace.Time(whole(value))
				case "request_end_ns":
					end = trace.Time(whole(value))
				case "was_cancelled":
					canceled = string(value) == "true"
				}
			})
		case "metrics":
			jsonscan.Members(value, 0, func(key, value []byte) {
				switch string(key) {
				case "time_to_first_token", "ttft":
					row.TTFT = measured(value)
				case "request_latency":
					latency = measured(value)
				case "input_sequence_length":
					row.Prompt = counted(value)
				case "output_sequence_length":
					row.Completion = counted(value)
				}
			})
		case "error":
			failed = failure(value)
		}
	})
	if err != nil || start <= 0 {
		return false
	}
	if row.Start, row.End = start, end; end < start {
		row.End = start + trace.Time(max(0, latency))
	}
	row.E2E = int64(row.End - row.Start)
	switch {
	case canceled:
		row.Finish, row.Reason = r.f.Set.Syms.Intern("abort"), r.f.Set.Syms.Intern("Aborted")
	case failed != "":
		row.Finish, row.Reason = r.f.Set.Syms.Intern("abort"), r.f.Set.Syms.Intern(failed)
	}
	if row.ID == (spantable.Text{}) { // in old versions, or if no header was sent
		row.ID = r.rows.Text(strconv.AppendInt([]byte("line "), int64(r.at), 10))
	}
	return r.rows.Add(row)
}

// failure returns how a request failed, from {"code":503,"message":".."}; "" for anything else.
func failure(b []byte) (says string) {
	if len(b) == 0 || b[0] != '{' {
		return ""
	}
	says = "failed"
	jsonscan.Members(b, 0, func(key, value []byte) {
		if code := whole(value); string(key) == "code" && code > 0 {
			says += " with status " + strconv.FormatInt(code, 10)
		}
	})
	return says
}

// measured parses {"value":4.9,"unit":"ms"} as ns; Unknown for anything else.
func measured(b []byte) int64 {
	value, unit := -1.0, 1e6
	jsonscan.Members(b, 0, func(key, v []byte) {
		switch string(key) {
		case "value":
			if x, err := strconv.ParseFloat(string(v), 64); err == nil {
				value = x
			}
		case "unit":
			switch string(jsonscan.Quoted(v)) {
			case "ns":
				unit = 1
			case "us":
				unit = 1e3
			case "s", "sec":
				unit = 1e9
			}
		}
	})
	if !(value >= 0 && value*unit < 1e18) {
		return spantable.Unknown
	}
	return int64(value*unit + 0.5)
}

// counted parses {"value":550,"unit":"tokens"}.
func counted(b []byte) (n int64) {
	n = spantable.Unknown
	jsonscan.Members(b, 0, func(key, v []byte) {
		if string(key) == "value" {
			n = whole(v)
		}
	})
	return n
}

// whole parses a whole number of at least 0; Unknown for anything else.
func whole(b []byte) int64 {
	if x, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil && x >= 0 {
		return x
	}
	if x, err := strconv.ParseFloat(string(b), 64); err == nil && x >= 0 && x < 1<<53 {
		return int64(x)
	}
	return spantable.Unknown
}
