// Package sglang reads what SGLang's servers write about themselves on request, or when they crash:
// where tokens went ([ExpertDump]), which requests there were ([RequestDump]), and their answers about
// their state ([ServerState]). Their logs are in package serverlog.
package sglang
