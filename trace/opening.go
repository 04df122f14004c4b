package trace

import (
	"strconv"
	"strings"
)

// An Opening says what a viewer shows first of a trace. The trace itself tells it, as
// attributes, for whoever opens the file.
type Opening struct {
	// Pin are rows to keep in sight, by their paths: the names of their ancestors and
	// their own, joined by PathSeparator. A path has no line break.
	Pin []string
	// From and To are the time to look at; 0 is all of it.
	From, To Time
}

// PathSeparator stands between the names of a path of tracks.
const PathSeparator = " > "

// Keys of the attributes of an opening.
const (
	openingPin  = "sgtrace.open.pin"
	openingFrom = "sgtrace.open.from"
	openingTo   = "sgtrace.open.to"
)

// Attributes returns what tells an opening; nothing of one that says nothing.
func (o *Opening) Attributes() (list []Attribute) {
	if len(o.Pin) > 0 {
		list = append(list, Attribute{openingPin, strings.Join(o.Pin, "\n")})
	}
	if o.From < o.To {
		list = append(list, Attribute{openingFrom, strconv.FormatInt(int64(o.From), 10)}, Attribute{openingTo, strconv.FormatInt(int64(o.To), 10)})
	}
	return list
}

// OpeningOf returns what attributes tell. What cannot be read says nothing.
func OpeningOf(attributes map[string]string) (o Opening) {
	if pin := attributes[openingPin]; pin != "" {
		o.Pin = strings.Split(pin, "\n")
	}
	from, errFrom := strconv.ParseInt(attributes[openingFrom], 10, 64)
	to, errTo := strconv.ParseInt(attributes[openingTo], 10, 64)
	if errFrom == nil && errTo == nil && from < to {
		o.From, o.To = Time(from), Time(to)
	}
	return o
}
