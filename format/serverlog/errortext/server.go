package errortext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// PoolSize reads the size of a KV cache.
func PoolSize(b []byte) string {
	if n, ok := logline.After(b, "#tokens: "); ok {
		return fmt.Sprintf("has a KV cache for %.0f tokens", n)
	}
	return "has its KV cache"
}

// Weights reads how long a server took to load its weights, and their size on a device: `elapsed=240.31 s, .. mem
// usage=30.64 GB`, or in vLLM "took 15.08 GiB memory and 13.4 seconds".
func Weights(b []byte) string {
	s, ok := logline.After(b, "elapsed=")
	size, sized := logline.After(b, "mem usage=")
	if vllm := logline.Behind(b, " and "); vllm != nil {
		s, ok = logline.After(vllm, "")
		size, sized = logline.After(b, "took ")
	}
	switch {
	case !ok || s < 1:
		return "has its weights"
	case sized && size > 0:
		return fmt.Sprintf("has its weights, after %.0f s (%.3g GB)", s, size)
	}
	return fmt.Sprintf("has its weights, after %.0f s", s)
}

// Unhealthy reads for how long a server has not answered a health check.
func Unhealthy(b []byte) string {
	text := "a health check failed"
	if s, ok := logline.After(b, "for last "); ok {
		text += fmt.Sprintf(": no answer for %g s", s)
	}
	if i := bytes.Index(b, []byte("last_heartbeat time: ")); i >= 0 {
		if c := b[i+len("last_heartbeat time: "):]; len(c) >= 8 {
			if _, ok := logline.ClockOf(c); ok {
				text += ", the last one at " + string(c[:8]) + " by its clock"
			}
		}
	}
	return text
}

// Watchdog reads which process did not return in time.
func Watchdog(b []byte) string {
	who := "Scheduler"
	if i := bytes.Index(b, []byte(" watchdog timeout (")); i > 0 {
		who = logline.Word(b[bytes.LastIndexByte(b[:i], ' ')+1 : i])
	}
	s, ok := logline.After(b, "watchdog_timeout=")
	if !ok {
		return who + " did not return in time, says its watchdog"
	}
	return fmt.Sprintf("%s did not return for %g to %g s, says its watchdog", who, s, 1.5*s)
}

// Crashed reads which process crashed, and with which exit code.
func Crashed(b []byte) string {
	text := "a process of the server crashed"
	if i := bytes.Index(b, []byte("Subprocess ")); i >= 0 {
		text = logline.Word(b[i+len("Subprocess "):]) + " crashed"
	}
	if code, ok := logline.After(b, "exit code "); ok {
		text += " with exit code " + strconv.Itoa(int(code)) + ExitCodeMeaning(strconv.Itoa(int(code)))
	}
	return text
}

// LostPeer reads with how many requests a decode server lost its prefill server.
func LostPeer(b []byte, x *series.Instant) string {
	if i := bytes.LastIndex(b, []byte("), ")); i >= 0 {
		if n, ok := logline.After(b[i+3:], ""); ok && n >= 0 {
			x.Count = int32(max(1, min(n, 1e6)))
			return fmt.Sprintf("lost the connection to a prefill server, with %.0f requests", n)
		}
	}
	return "lost the connection to a prefill server"
}

// GarbageCollection reads how long Python collected garbage, which stops all threads of the process.
func GarbageCollection(b []byte, x *series.Instant) string {
	s, ok := logline.After(b, "Duration: ")
	if !ok {
		return "garbage collection took long"
	}
	x.Time -= trace.Time(s * 1e9) // it is logged afterward
	return fmt.Sprintf("garbage collection took %.1f s", s)
}

// KilledByRay reads the number of workers that Ray killed; the line may also report none.
func KilledByRay(b []byte, x *series.Instant) string {
	before, _, _ := bytes.Cut(b, []byte(" Workers (tasks"))
	n, ok := logline.After(before[bytes.LastIndexByte(before, ' ')+1:], "")
	if !ok || n < 1 {
		return ""
	}
	x.Count = int32(min(n, 1e6))
	return fmt.Sprintf("Ray killed %.0f of its workers, because the host ran out of memory", n)
}

// LostReplica returns a reader of the replica that Ray Serve lost, with a description: "Actor for replica D#abc crashed",
// or since 2.10 "Replica(id='abc', deployment='D', app='default') failed health check, stopping it.".
func LostReplica(key, what string) func([]byte) string {
	return func(b []byte) string {
		name := bytes.TrimPrefix(bytes.TrimPrefix(bytes.TrimLeft(logline.Behind(b, key), " "), []byte("Replica")), []byte("(id='"))
		return "Ray Serve's replica " + logline.Beginning(name, "#_-.:", 100) + " " + what
	}
}

// KilledBySlurm reads "slurmstepd: error: Detected 2 oom_kill events in StepId=7.0.", about the cgroup of a step, which may
// contain any program.
func KilledBySlurm(b []byte, x *series.Instant) string {
	n, ok := logline.After(b, "Detected ")
	if !ok {
		return ""
	}
	x.Count = int32(max(1, min(n, 1e6)))
	return fmt.Sprintf("Slurm's step %s ran out of memory, and the kernel killed %.0f of its processes", strings.TrimRight(logline.Beginning(logline.Behind(bytes.ReplaceAll(b, []byte("in step "), []byte("StepId=")), "StepId="), ".", 40), "."), n)
}
