// Package kubeevents reads what Kubernetes says of pods and nodes: its events, as kubectl prints them as JSON
// (kubectl get events -o json, also of a watch) or YAML, and as a table (kubectl get events, kubectl describe). Events that say
// that something is wrong or ends are instants of a host or of a pod; all others are passed over.
//
// # What is odd
//
//   - A table has ages, "2m37s" or "2m37s (x22 over 6m45s)", and no times: they count back from when the file was written.
//   - An event that repeats is one, with a count and its first and last time. Events of events.k8s.io have a series instead.
//   - OOMKilling, Evicted and NodeNotReady may be of type Normal. No event says that a pod is healthy again.
//   - The same event is listed for the pod and, by another controller, for its set.
package kubeevents
