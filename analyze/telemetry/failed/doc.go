// Package failed finds what servers, routers, and Kubernetes say that failed: processes that ended or hang, transfers that
// did not arrive, and servers that were taken away.
package failed
