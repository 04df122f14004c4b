// Package work measures how long servers took for pieces of their work, a token of an answer or a prompt, relative to what such
// work usually takes. That tells a server that became slower from one that has more to do.
package work
