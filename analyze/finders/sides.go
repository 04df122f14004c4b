package finders

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// throughPrefill reports whether more requests reach decode servers because more reach prefill servers: they are the same requests.
func throughPrefill(more, first *finding.Finding) bool {
	return more.At.Role == request.Decode && first.At.Role == request.Prefill && more.Metric.Name == first.Metric.Name && more.Metric.Name == telemetry.RequestRate && since(more, first)
}

// behindTransfers reports whether requests take longer on a server because the KV cache reaches it, or leaves it, more slowly.
func behindTransfers(longer, slower *finding.Finding) bool {
	return longer.At.Role != request.Unified && longer.Metric.Name == series.Metrics[series.TTFT].Name && since(longer, slower)
}

// behindDecode reports whether requests take longer on a prefill server because decode servers
// have no room: prompts are computed and sent only if there is room.
func behindDecode(longer, full *finding.Finding) bool {
	return longer.At.Role == request.Prefill && full.At.Role == request.Decode && since(longer, full)
}

// asTransfers reports whether transfers may explain what takes longer. A stage that contains a transfer, or
// waits for one, grows by no more than the transfer does; and users may see more requests that wait for long.
func asTransfers(slower, link *finding.Finding) bool {
	x, y := &slower.Metric, &link.Metric
	return x.Unit == table.Share && isSeen(slower) || x.Unit == table.Duration && y.Unit == table.Duration && x.After > x.Before && x.After-x.Before <= 1.5*(y.After-y.Before)
}
