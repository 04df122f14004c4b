package request

import (
	"math"
	"strings"
)

// Phase is the purpose of a stage for a request, independent of a version's names.
type Phase uint8

const (
	OtherPhase     Phase = iota
	RoutePhase           // choosing a server and talking to it
	DispatchPhase        // tokenizing, passing the request to the scheduler
	QueuePhase           // waiting to be scheduled
	BootstrapPhase       // prefill and decode side finding each other
	PrefillPhase         // computing the prompt
	TransferPhase        // moving the KV cache
	DecodePhase          // generating
)

// String returns the word used in reports.
func (p Phase) String() string {
	return [...]string{"other", "route", "dispatch", "queue", "bootstrap", "prefill", "transfer", "decode"}[p]
}

// Meaning identifies a stage more precisely than its phase, for code that depends on specific stages,
// whatever a producer calls them.
type Meaning uint8

const (
	NoMeaning         Meaning = iota // no code depends on it, or it is not a known stage
	Tokenizing                       // of the prompt
	Encoding                         // of images or audio
	Queueing                         // until the first prefill batch
	SendPreparing                    // of the transfer, on the prefill server
	SendConnecting                   // the prefill server waits for the decode server
	ReceivePreparing                 // of the transfer, on the decode server
	ReceiveConnecting                // the decode server connects to the prefill server
	Prefilling                       // the whole prefill; a token is out at its end
	PrefillingChunk                  // one chunk of a prompt
	Sending                          // the KV cache, from the prefill server
	SendQueueing                     // waiting of one piece of the KV cache for a worker to send it
	WorkerSending                    // a worker sends a piece of the KV cache
	Reconnecting                     // the KV cache returns after a retraction; seems to last from the start of the first connection
	Receiving                        // the decode server waits for the KV cache
	DecodeQueueing                   // until the first decode batch
	Answering                        // from the first decode step to the last
	Stepping                         // one decode step; one or more tokens are out at its end
	Prebuilt                         // a batch takes over a token that was already computed; it is out at the end
	Launching                        // the CPU side of one micro-batch
	Verifying                        // one verification of drafted tokens, which accepts some of them
	Caching                          // moving pages between memory and storage, beside the request
)

// GivesToken reports whether a token is out at the end of a stage.
func (m Meaning) GivesToken() bool { return m == Stepping || m == Prefilling || m == Prebuilt }

// Phase returns the phase of stages with a meaning.
func (m Meaning) Phase() Phase {
	switch m {
	case Tokenizing:
		return DispatchPhase
	case Queueing, DecodeQueueing:
		return QueuePhase
	case SendPreparing, SendConnecting, ReceivePreparing, ReceiveConnecting, Reconnecting:
		return BootstrapPhase
	case Encoding, Prefilling, PrefillingChunk:
		return PrefillPhase
	case Sending, SendQueueing, WorkerSending, Receiving:
		return TransferPhase
	case Answering, Stepping, Prebuilt, Verifying:
		return DecodePhase
	}
	return OtherPhase
}

// A StageInfo describes the stages of a name.
type StageInfo struct {
	Name  string
	Level int // lowest --trace-level that exports it
	Phase Phase
	Means Meaning
	Doc   string
}

// Watched are the stages whose times timelines and the search for changes examine: what a request waits
// for, and the steps of its computation. Other stages grow with the length of the answer, are pieces of
// these, or take no time.
var Watched = [...]Meaning{
	Tokenizing, Encoding,
	SendConnecting, Queueing, Prefilling, Sending, WorkerSending,
	ReceiveConnecting, Receiving, DecodeQueueing, Stepping,
}

// WatchedIndex returns the index of a stage in Watched, or -1.
func WatchedIndex(row *Row) int { return int(watchedIndex[row.Means]) - 1 }

// watchedIndex has the indexes by meaning, counted from 1.
var watchedIndex = func() (index [math.MaxUint8 + 1]uint8) {
	for k, means := range Watched {
		index[means] = uint8(k + 1)
	}
	return index
}()

// WatchedNames returns the names of the stages in Watched.
func (s *Set) WatchedNames() []string {
	names := make([]string, len(Watched))
	for k, means := range Watched {
		names[k] = s.StageCalled(means)
	}
	return names
}

// Layouts is a set of the ways in which a producer arranges its spans: a dump may hold several.
type Layouts uint8

const (
	LayoutV1a Layouts = 1 << iota
	LayoutV1b
	LayoutV2
	LayoutGateway
	LayoutVLLM
	LayoutOldNames // not a layout: stages have names that changed within v2
)

// layoutWords name the layouts, with the month in which SGLang began to write them.
var layoutWords = []struct {
	layout Layouts
	word   string
}{
	{LayoutV1a, "v1a (2025-09)"}, // request, thread, flat stages (#9962)
	{LayoutV1b, "v1b (2025-10)"}, // the same under "Bootstrap Room" spans (#10804)
	{LayoutV2, "v2 (2026-04)"},   // nested stages, attribute module, api_server_dispatch (#17862, #22186)
	{LayoutGateway, "gateway"},   // sgl-model-gateway and its successors
	{LayoutVLLM, "vllm"},         // one span per request
}

// String returns the words used in reports.
func (l Layouts) String() string {
	if l&LayoutV1b != 0 {
		l &^= LayoutV1a // its request spans look the same
	}
	var words []string
	for _, w := range layoutWords {
		switch {
		case l&w.layout == 0:
		case w.layout == LayoutV2 && l&LayoutOldNames != 0:
			words = append(words, "v2 (2026-02)")
		default:
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}
