package nsys

import (
	"path/filepath"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// writer writes the file of one piece.
type writer struct {
	*piece
	db *DB
}

// write writes the files of a host.
func (h *host) write(path string) ([]FileTruth, error) {
	var files []FileTruth
	for _, s := range h.pieces() {
		name := s.path(path)
		db, err := Create(name, h.config.Schema)
		if err != nil {
			return nil, err
		}
		w := writer{&s, db}
		w.about()
		w.target()
		w.calls()
		w.kernels()
		w.copies()
		w.graphs()
		w.ranges()
		w.system()
		w.metrics()
		if err := db.Close(); err != nil {
			return nil, err
		}
		files = append(files, s.truth(filepath.Base(name)))
	}
	return files, nil
}

// times sets the start and the end of a row.
func (w *writer) times(t *Table, s interval) {
	t.Set("start", w.time(s.start), "end", w.time(s.end))
}

// place sets the place of an operation.
func (w *writer) place(t *Table, p *process, stream int64, correlation int) {
	t.Set("deviceId", int64(p.device()), "contextId", cudaContext, "greenContextId", 0, "streamId", stream,
		"correlationId", int64(correlation), "globalPid", GlobalPID(p.pid))
}

// cudaContext is the primary context of every process.
const cudaContext = 1

// syncs reports whether a call waits for something, or makes a stream wait.
func (k *call) syncs() bool { return k.api == torch.APIStreamSync || k.api == torch.APIStreamWait }

// calls writes the calls of CUDA, and for those that wait also the synchronization.
func (w *writer) calls() {
	t := w.db.Table("CUPTI_ACTIVITY_KIND_RUNTIME")
	sync := w.db.Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
	for _, o := range inOrder(w.piece, func(p *process) []call { return p.calls }, w.hasCall) {
		k := o.event
		class := int64(classRuntime)
		if torch.APITable[k.api].In == torch.CatDriver {
			class = classDriver
		}
		w.times(t, k.interval)
		t.Insert("eventClass", class, "globalTid", GlobalTID(o.process.pid, o.process.pid), "correlationId", int64(k.correlation),
			"nameId", ID(callNames[k.api]))
		if !k.syncs() {
			continue
		}
		kind, stream, event := int64(syncStream), int64(torch.ComputeStream), int64(0)
		if k.api == torch.APIStreamWait {
			kind, stream, event = syncStreamWait, torch.CommStream, 1
		}
		w.times(sync, k.interval)
		w.place(sync, o.process, stream, k.correlation)
		sync.Insert("syncType", kind, "eventId", event, "eventSyncId", event)
	}
}

// kernels writes the kernels.
func (w *writer) kernels() {
	t := w.db.Table("CUPTI_ACTIVITY_KIND_KERNEL")
	for column, v := range map[string]int64{
		"launchType": 1, "cacheConfig": 1, "gridY": 1, "gridZ": 1, "blockY": 1, "blockZ": 1, "localMemoryTotal": 250_871_808,
		"sharedMemoryLimitConfig": 0, "clusterSchedulingPolicy": 1, "maxPotentialClusterSize": 0, "maxActiveClusters": 0,
	} {
		t.Set(column, v)
	}
	t.Set("tensorSizeMinusOneElements", "[]")
	works := inOrder(w.piece, func(p *process) []work { return p.work }, w.isKernel)
	for i, o := range works {
		k := o.event
		row := &torch.OpTable[k.op]
		shape, short := launchShapes[row.Details], shortName(row.Kernel)
		w.times(t, k.interval)
		w.place(t, o.process, int64(row.Stream), k.correlation)
		t.Set("demangledName", ID(row.Kernel), "shortName", ID(short), "mangledName", ID("_Z"+short),
			"registersPerThread", shape.registers, "gridX", shape.grid, "blockX", shape.block, "dynamicSharedMemory", shape.shared,
			"sharedMemoryExecuted", max(shape.shared, 16_384), "gridId", int64(i+1), "clusterX", shape.cluster,
			"clusterY", min(shape.cluster, 1), "clusterZ", min(shape.cluster, 1))
		if t.Set("graphNodeId", nil); k.node != 0 {
			t.Set("graphNodeId", o.process.graphNode(k.node))
		}
		if t.Set("graphId", nil); k.node != 0 {
			t.Set("graphId", graphID)
		}
		t.Insert()
	}
}

func (w *writer) isKernel(p *process, k *work) bool {
	return k.op != torch.OpGraph && torch.OpTable[k.op].GPU == torch.CatKernel && w.hasWork(p, k)
}

// copies writes the copies between host and GPU.
func (w *writer) copies() {
	t := w.db.Table("CUPTI_ACTIVITY_KIND_MEMCPY")
	works := inOrder(w.piece, func(p *process) []work { return p.work }, func(p *process, k *work) bool {
		return torch.OpTable[k.op].GPU == torch.CatMemcpy && w.hasWork(p, k)
	})
	for _, o := range works {
		k := o.event
		kind, from, to := int64(copyToDevice), int64(pinnedMemory), int64(deviceMemory)
		if k.pageable {
			from = pageableMemory
		}
		if k.op == torch.OpCopyOut {
			kind, from, to = copyToHost, to, from
		}
		w.times(t, k.interval)
		w.place(t, o.process, int64(torch.OpTable[k.op].Stream), k.correlation)
		t.Insert("bytes", int64(k.bytes), "copyKind", kind, "srcKind", from, "dstKind", to, "copyCount", 1)
	}
}

// graphs writes the runs of whole graphs, or else the creation of their nodes.
func (w *writer) graphs() {
	t := w.db.Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
	runs := inOrder(w.piece, func(p *process) []work { return p.work }, func(p *process, k *work) bool {
		return k.op == torch.OpGraph && w.hasWork(p, k)
	})
	for _, o := range runs {
		w.times(t, o.event.interval)
		w.place(t, o.process, torch.ComputeStream, o.event.correlation)
		t.Insert("graphId", graphID, "graphExecId", graphExecID)
	}
	nodes := w.db.Table("CUDA_GRAPH_NODE_EVENTS")
	for _, p := range w.host.processes {
		most := 0
		for i := range p.work {
			most = max(most, p.work[i].node)
		}
		for n := range most { // before the first step
			at := w.host.from + 38*ms + int64(n)*us
			made := interval{at, at + 900}
			if !w.has(made) {
				continue
			}
			w.times(nodes, made)
			nodes.Insert("eventClass", classGraphNode, "globalTid", GlobalTID(p.pid, p.pid), "nameId", ID("Graph Node Creation"),
				"graphNodeId", p.graphNode(n+1))
		}
	}
}

// graphNode returns the id of a node of the graph.
func (p *process) graphNode(n int) int64 { return int64(p.capture.Device()+1)<<32 | int64(n) }
