package router

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// text reads a line in the text form: "2026-02-26 13:00:06  WARN http_request{method=POST uri=/generate request_id="r1"
// status_code=503}: smg::core::worker: src/core/worker.rs:978: ", and the message.
func (r *reader) text(b []byte, x *said) bool {
	const looked = 1200
	i := logline.IndexLeveledStamp(b)
	if i < 0 {
		return false
	}
	_, n, _ := logline.Fraction(b[i+logline.DateTime:])
	at, ok := r.stamp(b[i:], b[i+logline.DateTime:])
	rest := bytes.TrimLeft(bytes.TrimPrefix(b[i+logline.DateTime+n:], []byte("Z")), " ")
	level := logline.LevelOf(rest)
	if !ok || level == nil {
		return false
	}
	rest = rest[len(level)+1:]
	from, to := module(rest[:min(len(rest), looked)])
	if from < 0 {
		return false
	}
	*x = said{at: at, level: level, message: behindSource(rest[to:])}
	return true
}

// old reads a line in the form of routers until 2025-06: "[Router (Rust)] 2025-03-08 02:33:09 - INFO - All workers are
// healthy". Its time is local.
func (r *reader) old(b []byte, x *said) bool {
	const looked = 400
	_, rest, ok := bytes.Cut(b[:min(len(b), looked)], []byte("[Router ("))
	_, rest, ok2 := bytes.Cut(rest, []byte(")] "))
	if !ok || !ok2 {
		return false
	}
	at, ok := r.stamp(rest, nil)
	if !ok {
		return false
	}
	level, message, ok := bytes.Cut(bytes.TrimPrefix(rest[logline.DateTime:], []byte(" - ")), []byte(" - "))
	zone := &r.f.Source().Zone
	zone.By, zone.Local = "", true
	*x = said{at: at, level: level, message: message}
	return ok
}

// module returns the start of the name of a router's module, and the index after its colon; -1 if there is none.
func module(b []byte) (from, to int) {
	for _, name := range [...]string{"smg", "sgl_model_gateway", "sglang_router_rs", "dynamo_llm", "dynamo_runtime"} {
		for at := 0; ; at += len(name) {
			i := bytes.Index(b[at:], []byte(name))
			if i < 0 {
				break
			}
			if at += i; at > 0 && b[at-1] != ' ' {
				continue
			}
			end := at + len(name)
			for end < len(b) && (b[end] == ':' || b[end] == '_' || b[end] == '-' || b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z' || b[end] >= '0' && b[end] <= '9') {
				end++
			}
			if end < len(b) && b[end] == ' ' && b[end-1] == ':' {
				return at, end + 1
			}
		}
	}
	return -1, 0
}

// behindSource returns a message without the source position in front of it, "src/core/worker.rs:978: ".
func behindSource(b []byte) []byte {
	word, rest, ok := bytes.Cut(b, []byte(" "))
	if ok && bytes.HasSuffix(word, []byte(":")) && bytes.Contains(word, []byte(".rs:")) {
		return rest
	}
	return b
}

// stamp parses a stamp and its decimals.
func (r *reader) stamp(b, decimals []byte) (trace.Time, bool) {
	at, ok := r.stamps.Read(b)
	ns, _, grain := logline.Fraction(decimals)
	r.f.Within(grain)
	return at + ns, ok
}

// object reads a line in the JSON form. Its fields are next to the message, or in "fields".
func (r *reader) object(b []byte, x *said) bool {
	var message, fields []byte
	ours, timed := true, false // some of Dynamo's lines have no target
	end, err := jsonscan.Members(b, 0, func(key, value []byte) {
		switch string(key) {
		case "timestamp", "time":
			if v := jsonscan.Text(value); len(v) >= logline.DateTime {
				x.at, timed = r.stamp(v, v[logline.DateTime:])
			}
		case "level":
			x.level = jsonscan.Text(value)
		case "message":
			message = jsonscan.Text(value)
		case "target":
			ours = target.Match(jsonscan.Text(value))
		case "fields":
			fields = value
		case "span", "spans", "filename", "line_number", "threadName", "threadId":
		default:
			r.keep(key, value)
		}
	})
	if err != nil || end > len(b) {
		return false
	}
	if fields != nil {
		_, err = jsonscan.Members(fields, 0, func(key, value []byte) {
			if string(key) == "message" {
				message = jsonscan.Text(value)
			} else {
				r.keep(key, value)
			}
		})
	}
	x.message = append(append([]byte(nil), message...), r.pending...)
	r.pending = r.pending[:0]
	return err == nil && ours && timed && message != nil
}

var target = lazyregexp.New(`^` + modules + `(?:::|$)`)

// keep appends a field to the message, as in the text form.
func (r *reader) keep(key, value []byte) {
	const longest = 400
	if len(value) > longest {
		return
	}
	r.pending = append(append(append(r.pending, ' '), key...), '=')
	if v := jsonscan.Text(value); v != nil {
		value = v
	}
	r.pending = append(r.pending, value...)
}

// url finds the URL of a server in a text, and returns its host and port: "10.0.0.1:30000" for "http://10.0.0.1:30000@3",
// which is its DP rank 3; nil if there is none.
func url(b []byte) []byte {
	const longest = 100
	i := bytes.Index(b, []byte("://"))
	if i < 4 {
		return nil
	}
	b = b[i+len("://"):]
	end := 0
	for end < len(b) && (b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z' || b[end] >= '0' && b[end] <= ':' || b[end] == '.' || b[end] == '-' || b[end] == '[' || b[end] == ']') {
		end++
	}
	if end == 0 || end > longest {
		return nil
	}
	return bytes.TrimRight(b[:end], ":.-]")
}
