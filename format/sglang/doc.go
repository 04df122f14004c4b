// Package sglang reads what SGLang's servers write of themselves when they are asked to, or crash:
// where tokens went ([ExpertDump]), which requests there were ([RequestDump]), and their answers
// about how they are ([ServerState]). Their logs are in package serverlog.
package sglang
