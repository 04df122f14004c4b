package finders

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// throughPrefill reports whether more requests come to decode servers as more come to prefill servers: they are the same ones.
func throughPrefill(more, first *finding.Finding) bool {
	return more.At.Role == request.Decode && first.At.Role == request.Prefill && more.Metric.Name == first.Metric.Name && more.Metric.Name == telemetry.RequestRate && since(more, first)
}

// behindTransfers reports whether requests take longer on a server as the KV cache comes to it, or leaves it, more slowly.
func behindTransfers(longer, slower *finding.Finding) bool {
	return longer.At.Role != request.Unified && longer.Metric.Name == series.Metrics[series.TTFT].Name && since(longer, slower)
}

// behindDecode reports whether requests take longer on a prefill server as decode servers have no room: a prompt is computed, and sent, only
// where there is.
func behindDecode(longer, full *finding.Finding) bool {
	return longer.At.Role == request.Prefill && full.At.Role == request.Decode && since(longer, full)
}

// asTransfers reports whether what takes longer may be transfers, by how much they do: a part of a request that
// contains one, or waits for it, takes longer by no more. That more requests than before wait for long, users see of it.
func asTransfers(slower, link *finding.Finding) bool {
	x, y := &slower.Metric, &link.Metric
	return x.Unit == table.Share && isSeen(slower) || x.Unit == table.Duration && y.Unit == table.Duration && x.After > x.Before && x.After-x.Before <= 1.5*(y.After-y.Before)
}
