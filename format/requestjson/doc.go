// Package requestjson reads requests in JSON that is not OTLP: spans as [Jaeger] and [Zipkin] have
// them, and records of [Clients] and frontends.
package requestjson
