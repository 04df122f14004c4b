package assembly

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// describe determines the layouts of writers, and counts odd spans.
func (b *builder) describe() {
	type sum struct {
		noID, orphans int
		layouts       []request.Layouts // by writer
	}
	parallel.Fold(b.Len(), request.RowSize, func() *sum { return &sum{layouts: make([]request.Layouts, len(b.Writers))} }, func(x *sum, from, to int) {
		for i := from; i < to; i++ {
			row := &b.Rows[i]
			if row.Kind == request.Duplicate {
				continue
			}
			x.layouts[b.Sources[row.Source].Writer] |= b.layoutOf(i)
			span := b.dump.Identity(i)
			if span.ID == 0 {
				x.noID++
			}
			if span.Parent != 0 && b.tree.Orphan(i) {
				x.orphans++
			}
		}
	}, func(x *sum) {
		b.NoID, b.Orphans = b.NoID+x.noID, b.Orphans+x.orphans
		for w := range x.layouts {
			b.Writers[w].Layouts |= x.layouts[w]
		}
	})
}

// layoutOf returns the layout that span i indicates, if any.
func (b *builder) layoutOf(i int) request.Layouts {
	row := b.Row(i)
	switch row.Kind {
	case request.Gateway:
		return request.LayoutGateway
	case request.Envelope:
		return request.LayoutV1b
	case request.Stage:
		if row.Name == b.keys.dispatch || row.Name == b.keys.dcDispatch {
			return request.LayoutOldNames
		}
	case request.Root:
		if b.Name(i) == vllmRequest {
			return request.LayoutVLLM
		}
		if _, ok := b.dump.Args.Find(row.Args, b.keys.module); ok {
			return request.LayoutV2
		}
		return request.LayoutV1a
	}
	return 0
}

// addSources fills the tables of files, sources, and writers.
func (b *builder) addSources() {
	b.Files = make([]request.File, len(b.dump.Files))
	for i := range b.Files {
		f := &b.dump.Files[i]
		b.Files[i] = request.File{Name: f.Name, Encoding: f.Encoding, Bytes: f.Bytes, Documents: f.Documents, Rows: f.Spans, Other: f.Other}
	}
	b.Sources = make([]request.Source, len(b.dump.Origins))
	for i, o := range b.dump.Origins {
		b.Sources[i] = request.Source{File: int(o.File), Writer: int(o.Resource), Scope: o.Scope}
	}
	b.Writers = make([]request.Writer, len(b.dump.Resources))
	for i := range b.Writers {
		r := &b.dump.Resources[i]
		w := request.Writer{Service: r.Service, Instance: r.Instance}
		var pool []string
		for a := range b.dump.Args.All(r.Args) {
			switch a.Key {
			case b.keys.language:
				w.Language = string(a.Bytes())
			case b.keys.sdk:
				w.SDK = string(a.Bytes())
			case b.keys.version:
				w.Version = string(a.Bytes())
			case b.keys.release:
				w.Release = string(a.Bytes())
			default:
				if key := b.dump.Syms.Name(a.Key); isPoolKey(key) {
					pool = append(pool, key+" "+string(a.Bytes()))
				}
			}
		}
		slices.Sort(pool)
		w.Pool = strings.Join(pool, ", ")
		b.Writers[i] = w
	}
	b.Offsets = b.dump.Frames()
}

// poolKeys are the resource attributes that identify servers with equal setups, by OpenTelemetry's semantic
// conventions and as operators name them in OTEL_RESOURCE_ATTRIBUTES. Attributes that differ on each
// machine, such as the name of a pod, are not among them.
var poolKeys = []string{
	"deployment.environment", "deployment.environment.name", "service.namespace", "k8s.namespace.name", "k8s.cluster.name",
	"k8s.deployment.name", "k8s.statefulset.name", "host.type", "cloud.region", "pool", "node.pool", "gpu", "gpu.type", "gpu.model", "hw.model", "accelerator",
}

// isPoolKey reports whether an attribute of a resource is one of poolKeys.
func isPoolKey(key string) bool {
	return slices.Contains(poolKeys, strings.NewReplacer("_", ".", "-", ".").Replace(key))
}

// A rowMaker makes rows from spans. It fills in everything that follows from a single span, since each pass
// over the rows of a large dump costs time if they are in a file.
type rowMaker struct {
	dump  *spantable.Table
	infos []*request.StageInfo // by symbol
	step  trace.Sym
}

func newRowMaker(d *spantable.Table) *rowMaker {
	names := d.Syms.Names()
	m := &rowMaker{dump: d, infos: make([]*request.StageInfo, len(names)), step: newAttrKeys(d.Syms).decodeCount}
	for i, name := range names {
		m.infos[i] = stageByName[name]
	}
	return m
}

// fill completes the row of span i, which already has the times, the name, the arguments, and the place.
func (m *rowMaker) fill(i int, row *request.Row) {
	m.clear(i, row)
	row.Step = request.Unknown
	if row.Means == request.Stepping || row.Means == request.Prefilling {
		if a, ok := m.dump.Args.Find(row.Args, m.step); ok {
			row.Step = argCount(a)
		}
	}
}

// clear resets the row of span i to what follows from the span alone.
func (m *rowMaker) clear(i int, row *request.Row) {
	row.Thread, row.Part, row.Proc = request.None, request.None, request.None
	row.Kind, row.Instants = request.Generic, m.dump.FirstEvent(i)
	row.Phase, row.Means, row.Level = 0, 0, 0
	if info := m.infos[row.Name]; info != nil {
		row.Phase, row.Means, row.Level = info.Phase, info.Means, uint8(info.Level)
	}
}

// fillLinks fills the table of links, and resolves them.
func (b *builder) fillLinks() {
	b.Links = memory.Make[request.Link](b.dump.LinkCount())
	parallel.Rows(b.Len(), request.RowSize, func(first, behind int) {
		for i := first; i < behind; i++ {
			n := b.dump.FirstLink(i)
			for from := range b.tree.Linked(i) {
				b.Links[n] = request.Link{From: from, To: int32(i)}
				n++
			}
		}
	})
}

// instantSize is how many bytes a walk over instants touches per instant, including its arguments.
const instantSize = 96

// fillInstants fills the table of instants.
func (b *builder) fillInstants() {
	b.Instants = memory.Make[request.Instant](b.dump.EventCount())
	parallel.Rows(len(b.Instants), instantSize, func(from, to int) {
		for n := from; n < to; n++ {
			e := b.dump.Event(n)
			at := request.Instant{Time: e.Time, Name: e.Name, Args: e.Args, Batch: request.Unknown, Kind: b.instantKind(e.Name)}
			b.readBatch(&at)
			b.Instants[n] = at
		}
	})
}

// readBatch reads what an event says about a batch.
func (b *builder) readBatch(at *request.Instant) {
	for list := b.dump.Args.Raw(at.Args); len(list) > 0; {
		var a trace.Arg
		a, list = b.dump.Args.Next(list)
		switch a.Key {
		case b.keys.batchSize:
			at.Batch = argCount(a)
		case b.keys.forwardMode:
			at.Mode = modeOf(string(a.Bytes()))
		}
	}
}

// argCount reads a whole number; Unknown if it is not one, or out of range for a count.
func argCount(a trace.Arg) int32 {
	n, ok := argInt(a)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return request.Unknown
	}
	return int32(n)
}
