package redact

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var testKey = []byte("an incident's key")

func TestNamesDependOnTextKindAndKey(t *testing.T) {
	r := New(testKey)
	if a, b := r.Host("node1"), New(testKey).Host("node1"); a != b || !regexp.MustCompile(`^host-[a-z2-7]{10}$`).MatchString(a) {
		t.Errorf("names of one host: %q, %q", a, b)
	}
	for what, other := range map[string]string{
		"another text": r.Host("node2"), "another kind": "host-" + strings.TrimPrefix(r.Request("node1"), "req-"),
		"another key": New([]byte("another key")).Host("node1"), "a random key": New(nil).Host("node1"),
	} {
		if other == r.Host("node1") {
			t.Errorf("%s has the same name %s", what, other)
		}
	}
	if name := r.Host("node1"); r.Host(name) != name || r.Scrub(name) != name || r.Path(r.Path("/a/b.py")) != r.Path("/a/b.py") {
		t.Errorf("names are given names")
	}
	if full := r.Host("node1.acme.example"); !strings.HasPrefix(full, r.Host("node1")+".domain-") || r.Host(full) != full || r.Host("10.20.30.40") != r.name("host", "10.20.30.40") {
		t.Errorf("a host with its domain is %s", full)
	}
	if r.Host("") != "" || r.Host("?") != "?" {
		t.Errorf("unknown hosts have names")
	}
}

func TestScrub(t *testing.T) {
	r := New(testKey)
	r.LearnHost("node-7.acme.example")
	r.LearnHost("5f1d3c0a9e7b4c2d8f60a1b2c3d4e5f6")
	r.LearnRequest("HEALTH_CHECK_7ca07386cc094a1eb7064c2c0f552c94")
	r.LearnRequest("7ca07386cc094a1eb7064c2c0f552c94")
	r.LearnFile("/data/acme/decode-7.trace.json.gz")
	r.Keep("out/merged.pftrace")
	id := r.Request("7ca07386cc094a1eb7064c2c0f552c94")
	file := r.Path("/data/acme/decode-7.trace.json.gz")
	for _, c := range []struct{ text, want string }{
		{"TP0 (node-7.acme.example)", "TP0 (" + r.Host("node-7.acme.example") + ")"},
		{"decode Req 7ca07386", "decode Req " + id[:8]},
		{"5f1d3c0a Scheduler TP0", r.Host("5f1d3c0a9e7b4c2d8f60a1b2c3d4e5f6") + " Scheduler TP0"},
		{"x7ca07386 and 7ca07386x", "x7ca07386 and 7ca07386x"},
		{"HEALTH_CHECK_7ca07386cc094a1eb7064c2c0f552c94", r.Request("HEALTH_CHECK_7ca07386cc094a1eb7064c2c0f552c94")},
		{"open /data/acme/decode-7.trace.json.gz: no", "open " + file + ": no"},
		{"decode-7.trace.json.gz+120: data loss", file + "+120: data loss"},
		{"wrote out/merged.pftrace", "wrote out/merged.pftrace"},
		{"/usr/lib/python3.12/threading.py(1075): run", r.Path("/usr/lib/python3.12/threading.py") + "(1075): run"},
		{"srt/managers/scheduler.py(77): forward", r.Path("srt/managers/scheduler.py") + "(77): forward"},
		{`C:\Users\jane\run.py`, r.Path(`C:\Users\jane\run.py`)},
		{"see https://acme.example/a?b=c now", "see " + r.name("url", "https://acme.example/a?b=c") + " now"},
		{"by jane.doe@acme.example", "by " + r.text("jane.doe@acme.example")},
		{"peer 10.20.30.40:8000", "peer " + r.Host("10.20.30.40") + ":8000"},
		{"peer fe80:0:0:0:1:2:3:4", "peer " + r.Host("fe80:0:0:0:1:2:3:4")},
		{"instance 9c21c000-92b5-4642-b949-1fbd34450011", "instance " + r.Request("9c21c000-92b5-4642-b949-1fbd34450011")},
		{"GET /v1/chat/completions", "GET /v1/chat/completions"},
		{"POST /generate", "POST /generate"},
		{"GET /v1/models?user=jane", "GET /v1/models?" + r.text("user=jane")},
	} {
		if got := r.Scrub(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
		if once := r.Scrub(c.text); r.Scrub(once) != once {
			t.Errorf("%q becomes %q and then %q", c.text, once, r.Scrub(once))
		}
	}
}

// Names that engineers look for in a timeline are kept.
func TestScrubLeavesNamesOfThings(t *testing.T) {
	r := New(testKey)
	r.LearnHost("decode-0")
	r.LearnHost("node1")
	for _, text := range []string{
		"decode_loop", "prefill_transfer_kv_cache", "Prefill Scheduler TP0-PP1-DP2-EP3", "By process", "lane 3", "stream 7",
		"void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel>(int, std::array<char*, 2ul>)",
		"nvjet_tst_64x128_64x8_1x2_h_bz_splitK_TNT", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"[CUDA memcpy Host-to-Device]", "aten::scaled_dot_product_attention", "step[DECODE bs=32]", "ProfilerStep#7", "NCCL:ncclAllReduce",
		"Memcpy DtoH (Device -> Pageable)", "cudaLaunchKernelExC", "nn.Module: QKVParallelLinear_12", "<built-in method _abc_subclasscheck of PyCapsule object at 0x7f1ab423b200>",
		"2026-08-17T20:53:20.123456789Z", "20:53:20.049", "p50/p99", "share [%]", "Tokens/s", "from 11.5 to 35.5 /s.", "12.9 / 13.1", "-/-", "NVIDIA H100 80GB HBM3", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-70B",
		"torch._C._distributed_c10d", "0x74b4739b84e37632", "## Call CompiledFxGraph fk3mabcd2345 ##", "smg:http_request",
	} {
		if got := r.Scrub(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestAttributes(t *testing.T) {
	r := New(testKey)
	for _, c := range []struct{ key, text, want string }{
		{"host_id", "node1", r.Host("node1")},
		{"rid", "1", r.Request("1")},
		{"kernel_file", "/tmp/x/k.py", r.Path("/tmp/x/k.py")},
		{"dtype", "BFloat16", "BFloat16"},
		{"Process Group Ranks", "[0, 1, 2]", "[0, 1, 2]"},
		{"anything", "[[8192, 1], [1]]", "[[8192, 1], [1]]"},
		{"anything", "2284544 bytes", "2284544 bytes"},
		{"anything", "True", "True"},
		{"anything", "customer 12 of Acme", r.text("customer 12 of Acme")},
		{"gen_ai.response.model", "/models/acme-7b", r.Path("/models/acme-7b")},
		{"reason", "The request queue is full.", "The request queue is full."},
		{"reason", "Aborted by jane", "Aborted " + r.text(" by jane")},
		{"reason", "HTTP 503", "HTTP 503"},
		{"reason", "aborted while running", "aborted while running"},
		{"reason", "jane pressed stop", r.text("jane pressed stop")},
	} {
		if got := r.Attribute(c.key, c.text); got != c.want {
			t.Errorf("%s = %q becomes %q, want %q", c.key, c.text, got, c.want)
		}
	}
}

// Ids of one producer share a prefix, and each is found.
func TestScrubFindsManyIDs(t *testing.T) {
	r := New(testKey)
	const n = 5000
	for i := range n {
		r.LearnRequest(fmt.Sprintf("chatcmpl-%08d", i))
	}
	for i := 0; i < n; i += 100 {
		id := fmt.Sprintf("chatcmpl-%08d", i)
		if got, want := r.Scrub("Req "+id+" ends"), "Req "+r.Request(id)+" ends"; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// For any text, scrubbing is idempotent and removes what was learned. The exception is a path name
// before "://", which looks like a URL the second time.
func FuzzScrub(f *testing.F) {
	for _, s := range []string{"TP0 (node1)", "/a/b/c.py(3): f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New(testKey)
		r.LearnHost("node1")
		once := r.Scrub(text)
		if twice := r.Scrub(once); twice != once && !strings.Contains(once, "://") {
			t.Errorf("%q becomes %q and then %q", text, once, twice)
		}
		isASCII := strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
		if isASCII && regexp.MustCompile(`\bnode1\b`).MatchString(once) {
			t.Errorf("%q becomes %q", text, once)
		}
	})
}
