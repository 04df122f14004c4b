// Package requestjson reads requests in JSON other than OTLP: spans in the formats of [Jaeger] and [Zipkin], and records of
// [Clients] and frontends.
package requestjson
