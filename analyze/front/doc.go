// Package front looks at the processes in front of the schedulers: gateways, and the
// tokenizers of servers. No server sees what a request waits before its own span begins.
// The gateway's span shows it, and says when it sent the request: what comes before that is
// the gateway's, what comes after it is that of the tokenizer, which was too busy to begin.
package front
