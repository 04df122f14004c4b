package lifecycle

import (
	"strings"

	"github.com/sgtrace/sgtrace/request"
)

// refusals are the requests that failed at each server, ascending: a gateway says that it
// sent them there and that they failed by an HTTP status of 500 or more, and no server has
// ended them. It names servers by URL; the requests that were answered tell which is which.
func (o *observer) refusals() map[*server][]int {
	servers := o.byURL()
	list := map[*server][]int{}
	for i := range o.set.AllRequests() {
		q := &o.set.Requests[i]
		if q.Status != request.Failed || !strings.HasPrefix(o.set.Syms.Name(q.Reason), "HTTP 5") {
			continue
		}
		o.eachURL(q, func(_ request.Role, url string) {
			if x := servers[url]; x != nil && (len(list[x]) == 0 || list[x][len(list[x])-1] != i) {
				list[x] = append(list[x], i)
			}
		})
	}
	return list
}

// byURL returns the servers by their URLs, of those that always mean the same one.
func (o *observer) byURL() map[string]*server {
	servers := map[string]*server{}
	for i := range o.set.AllRequests() {
		q := &o.set.Requests[i]
		if q.Status != request.Finished {
			continue
		}
		o.eachURL(q, func(role request.Role, url string) {
			for _, p := range o.set.PartsOf(q) {
				part := &o.set.Parts[p]
				if part.Role != role || part.Proc == request.None || o.lifeOf[part.Proc] == nil {
					continue
				}
				x := o.lifeOf[part.Proc].server
				if other, known := servers[url]; known && other != x {
					x = nil
				}
				servers[url] = x
			}
		})
	}
	return servers
}

// eachURL calls f with the URLs that a gateway sent a request to, if that was once: nobody
// knows which server answered one that was sent again.
func (o *observer) eachURL(q *request.Request, f func(role request.Role, url string)) {
	if q.Gateway == request.None || q.Flags&request.SharedGateway != 0 {
		return
	}
	var sent []request.Instant
	for _, e := range o.set.InstantsOf(q.Gateway) {
		if e.Kind == request.HandedOn {
			sent = append(sent, e)
		}
	}
	if len(sent) != 1 {
		return
	}
	for a := range o.set.Args.All(sent[0].Args) {
		if role, ok := urlKeys[o.set.Syms.Name(a.Key)]; ok {
			f(role, string(a.Bytes()))
		}
	}
}

// urlKeys are the arguments of the gateway's events with the URL of a server of each role.
var urlKeys = map[string]request.Role{"url": request.Unified, "prefill_url": request.Prefill, "decode_url": request.Decode}
