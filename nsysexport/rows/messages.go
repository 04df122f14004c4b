package rows

import "github.com/sgtrace/sgtrace/trace"

// A Message is a warning or an error of the profiler: lost data, missing rights.
type Message struct {
	Time     trace.Time
	PID      int32 // -1 is unknown
	Severity uint8 // 2 is a warning, 3 an error
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

// Messages yields warnings and errors. What is less severe is about the profiler
// itself, with paths of the machine.
func (s *Source) Messages(yield func(*Message) bool) {
	const warning, failure = 2, 3
	var m Message
	s.scan(&messageTable, func(c *cursor) bool {
		severity := c.int(messageSeverity)
		if severity != warning && severity != failure {
			return true
		}
		m = Message{c.time(messageTime), pidOf(c.int(messagePID)), uint8(severity), s.Options.Syms.Name(c.textSym(messageText))}
		return yield(&m)
	})
}
