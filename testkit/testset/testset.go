package testset

import (
	"encoding/json"
	"fmt"
	"strings"
)

// AddEvent adds an event, at a time in us, to the span on line i.
func (d *Dump) AddEvent(i int, name string, at float64, a Attrs) {
	event, err := json.Marshal(map[string]any{"name": name, "timeUnixNano": fmt.Sprint(Epoch + int64(at*1000)), "attributes": keyValues(a)})
	if err != nil {
		panic(err)
	}
	d.Lines[i] = strings.Replace(d.Lines[i], `"status":{}`, `"events":[`+string(event)+`],"status":{}`, 1)
}
