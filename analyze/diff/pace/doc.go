// Package pace says whether steps of servers take longer than before for the same work, and on which servers, or whether they
// have more work. It takes steps from requests, from the names of annotations, or from logs and metrics, and compares them with
// the time that a model expects for such work.
package pace
