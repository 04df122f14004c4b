// Package failed finds failures that servers, routers, and Kubernetes report: processes that ended or hang, transfers
// that failed, and servers that were taken away.
package failed
