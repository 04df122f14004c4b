package operators

import (
	"encoding/json"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
)

// hostGPUs is the number of GPUs in a host whose links data sheets describe. Ranks are numbered host by host.
const hostGPUs = 8

// communicationOf returns the work of a collective whose sizes were recorded: what each rank has to
// send, and to read and write at least. Another network is the bound between hosts, and without a list
// of ranks it is unknown where those of a group are: then ok is false, as it is for other operators.
func communicationOf(name, values string) (w Work, ok bool) {
	if name != profile.CommunicationOperator {
		return w, false
	}
	bytes, sent, size, ranks, ok := profile.CommunicationOf(values)
	if !ok || size > hostGPUs {
		return w, false
	}
	var list []int
	if json.Unmarshal([]byte(ranks), &list) != nil || len(list) != int(size) ||
		slices.ContainsFunc(list, func(rank int) bool { return rank/hostGPUs != list[0]/hostGPUs }) {
		return w, false
	}
	return Work{Bytes: 2 * float64(bytes), Sent: sent}, true
}
