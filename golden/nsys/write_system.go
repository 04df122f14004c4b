package nsys

// system writes calls of the operating system, its scheduler, and GPU memory.
func (w *writer) system() {
	calls := w.db.Table("OSRT_API")
	for _, o := range inOrder(w.piece, func(p *process) []osCall { return p.os }, holds[osCall](w.piece)) {
		w.times(calls, o.event.interval)
		calls.Int("eventClass", classOS)
		calls.Int("globalTid", GlobalTID(o.process.pid, o.process.pid+o.event.thread))
		calls.ID("nameId", o.event.name)
		calls.Int("nestingLevel", 0)
		calls.Insert()
	}
	scheds := w.db.Table("SCHED_EVENTS")
	for _, o := range inOrder(w.piece, func(p *process) []sched { return p.scheds }, holds[sched](w.piece)) {
		scheds.Int("start", w.time(o.event.start))
		scheds.Int("cpu", int64(o.event.cpu))
		scheds.Int("isSchedIn", bit(o.event.in))
		scheds.Int("globalTid", GlobalTID(o.process.pid, o.process.pid))
		scheds.Insert()
	}
	events := w.db.Table("CUDA_GPU_MEMORY_USAGE_EVENTS")
	for _, o := range inOrder(w.piece, func(p *process) []memory { return p.memory }, holds[memory](w.piece)) {
		events.Int("start", w.time(o.event.start))
		events.Int("globalPid", GlobalPID(o.process.pid))
		events.Int("deviceId", int64(o.process.device()))
		events.Int("contextId", cudaContext)
		events.Int("address", o.event.address)
		events.Int("bytes", o.event.bytes)
		events.Int("memKind", deviceMemory)
		events.Int("memoryOperationType", bit(o.event.free))
		events.Insert()
	}
}

// bit returns a truth value as exports have them.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// metrics writes the samples of the GPUs, and what their numbers stand for.
func (w *writer) metrics() {
	names, samples := w.db.Table("TARGET_INFO_GPU_METRICS"), w.db.Table("GPU_METRICS")
	if len(w.host.samples) == 0 {
		return
	}
	for _, p := range w.host.processes {
		gpu := p.capture.Device()
		for m := range metricTable {
			names.Int("typeId", metricSource(gpu))
			names.Int("sourceId", metricSource(0))
			names.Text("typeName", gpuLabel("GPU Metrics", gpu))
			names.Int("metricId", int64(m))
			names.Text("metricName", metricTable[m].name)
			names.Insert()
		}
	}
	for i := range w.host.samples {
		x := &w.host.samples[i]
		if !w.has(x.interval) {
			continue
		}
		samples.Int("rawTimestamp", w.time(x.start))
		samples.Int("timestamp", w.time(x.start))
		samples.Int("typeId", metricSource(x.gpu))
		samples.Int("metricId", int64(x.metric))
		samples.Int("value", x.value)
		samples.Insert()
	}
}

// metricSource is the id of the metrics of a GPU; its low byte is that of the GPU.
func metricSource(gpu int) int64 { return GlobalVID() | 10<<16 | int64(gpu) }
