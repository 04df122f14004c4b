package assembly

// resultKeys are the attributes of requests and of gateways' spans that tell which request it
// is, how it went, or where in the code that was written down. All others tell what was
// asked for, by whom. One that ends with a dot stands for all that begin so.
var resultKeys = []string{
	"rid", "module", "bootstrap_room", "request_id", "gen_ai.request.id", // which request
	"gen_ai.usage.", "gen_ai.latency.", "gen_ai.response.", // read into the tables: see addPart
	"status_code", "latency", "busy_ns", "idle_ns", "error.", "exception.", "http.response.", "http.status_code", // how it went, to gateways
	"num_retractions",                              // of a record: see addPart
	"code.", "thread.", "level", "target", "otel.", // of the tracing itself
	"client.port", "network.peer.port", "net.peer.port", "url.full", // differ by request
}
