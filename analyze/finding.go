package analyze

// A Finding is something that an engineer should know about, and what shows it.
// What is not beyond doubt is not a finding.
type Finding struct {
	Kind FindingKind
	// Text is one sentence: what, where, since when, by how much.
	Text string
	// Evidence are further sentences, with the numbers behind it.
	Evidence []string
	// Show are the arguments of 'sgtrace report' that show more: "--tail".
	Show []string
	// Weight is the part of the time of requests, or of ranks, that it costs, 0 to 1:
	// findings are listed by it.
	Weight float64
}

// FindingKind is what a finding is about.
type FindingKind string

const (
	FindingStraggler FindingKind = "straggler" // a rank that others wait for
	FindingChange    FindingKind = "change"    // something became different at some time
	FindingTail      FindingKind = "tail"      // why the slow requests are slow
	FindingImbalance FindingKind = "imbalance" // ranks that should share work do not
	FindingPipeline  FindingKind = "pipeline"  // a stage of a pipeline that others wait for
	FindingGPU       FindingKind = "gpu"       // devices that are idle, or wait for data
	FindingErrors    FindingKind = "errors"    // requests that failed
)
