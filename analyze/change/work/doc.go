// Package work says how long servers took for pieces of their work, beside what such work usually takes: a token of an answer, or
// a prompt. So a server that has more to do is told from one that became slower.
package work
