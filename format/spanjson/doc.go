// Package spanjson reads spans in the JSON of [Jaeger] and of [Zipkin].
package spanjson
