// Package pace says whether, and on which servers, steps take longer than before for the same work,
// or whether steps have more work. It takes steps from requests, from the names of annotations, or
// from logs and metrics, and compares them with the time that a model predicts for their work.
package pace
