package rows

import (
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Message is a warning or an error of the profiler: lost data, missing permissions.
type Message struct {
	Time     trace.Time
	PID      int32 // -1 is unknown
	Severity uint8 // 1 is information, 2 a warning, 3 an error
	Text     string
}

const (
	messageTime = iota
	messageSeverity
	messagePID
	messageText
)

var messageTable = tableSpec{
	names: []string{"DIAGNOSTIC_EVENT"},
	columns: []column{
		messageTime:     {name: "timestamp", need: true},
		messageSeverity: {name: "severity", need: true},
		messagePID:      {name: "globalPid", none: noID},
		messageText:     {name: "text", need: true},
	},
}

// missing occurs in informational messages about lost data.
const missing = "might be missing"

// Messages yields warnings and errors. Less severe messages are about the profiler itself, with paths of the
// machine; it only yields those that say that something is missing.
func (s *Source) Messages(yield func(*Message) bool) {
	const warning, failure = 2, 3
	var m Message
	s.scan(&messageTable, func(c *cursor) bool {
		severity := c.int(messageSeverity)
		text := s.Options.Syms.Name(c.textSym(messageText))
		if severity != warning && severity != failure && !strings.Contains(text, missing) {
			return true
		}
		m = Message{c.time(messageTime), pidOf(c.int(messagePID)), uint8(severity), text}
		return yield(&m)
	})
}
