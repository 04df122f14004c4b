package profile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// The events of a profile become rows by category, with ranks, correlations, and the terms of nsys
// stats.
func TestHeld(t *testing.T) {
	syms, args := trace.NewSymbols(), trace.NewArgs()
	put := args.Appender()
	bytes := put.Put(trace.ArgList{}.Int(syms.Intern("bytes"), 640))
	shape := trace.ArgList{}.Array(0, trace.ArgList{}.Int(0, 8).Int(0, 4096))
	inputs := put.Put(trace.ArgList{}.Array(syms.Intern("Input type"), trace.ArgList{}.String(0, "float").String(0, "")).
		Array(syms.Intern("Input Dims"), trace.ArgList(nil).Array(0, trace.ArgList{}.Int(0, 8).Int(0, 4096)).Array(0, nil).Array(0, shape)))
	event := func(row int, cat, name string, from, dur int64, id trace.ArgsID) Slice {
		return Slice{Time: trace.Time(from), Dur: dur, Name: syms.Intern(name), Cat: syms.Intern(cat), Args: id, Place: SliceKindOf(cat).On(int32(row))}
	}
	p := &Profile{
		Rows: []Row{{Kind: RowThread, PID: 41, TID: 43}, {Kind: RowStream, PID: 3, TID: 7}, {Kind: RowThread, Part: "other"}},
		Events: []Slice{
			event(0, "cuda_runtime", "cudaLaunchKernel", 1, 2, 0),
			event(1, "kernel", "gemm(int)", 5, 9, 0),
			event(1, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, 1, bytes),
			event(1, "gpu_memset", "Memset (Device)", 22, 1, 0),
			event(0, "user_annotation", "step[DECODE bs=1]", 0, 30, 0),
			event(0, "cpu_op", "aten::mm", 0, 3, inputs),
			event(0, "python_function", "run", 0, 4, 0),
			event(2, "cuda_driver", "cuLaunchKernel", 1, 2, 0),
		},
	}
	p.Events[0].Correlation, p.Events[1].Correlation = 90, 90
	st := p.Stream(syms, args, func(part string) (rank, pid int32) {
		if part == "" {
			return 5, 41
		}
		return -1, -1
	})
	var got []string
	add := func(e *Event, more ...any) bool {
		got = append(got, fmt.Sprintf("%d %d %s %d %d %d %v", e.Start, e.Dur(), syms.Name(e.Name), e.Correlation, e.Rank, e.PID, more))
		return true
	}
	st.Kernels(func(k *Kernel) bool { return add(&k.Event, k.Device, k.Stream) })
	st.Calls(func(c *Call) bool { return add(&c.Event, c.TID) })
	st.Copies(func(c *Copy) bool { return add(&c.Event, c.Device, c.Bytes, c.Kind) })
	st.Ranges(func(r *Range) bool { return add(&r.Event, r.TID, r.Style, r.Open) })
	st.Frames(func(f *Frame) bool { return add(&f.Event, f.TID, f.Kind, syms.Name(f.Shapes), syms.Name(f.Types)) })
	want := []string{
		"5 9 gemm(int) 90 5 41 [3 7]", "1 2 cudaLaunchKernel 90 5 41 [43]",
		"20 1 [CUDA memcpy Host-to-Device] 0 5 41 [3 640 Pinned -> Device]", "22 1 [CUDA memset] 0 5 41 [3 -1 Device]",
		"0 30 step[DECODE bs=1] 0 5 41 [43 PushPop false]",
		`0 3 aten::mm 0 5 41 [43 0 [[8,4096],[],[[8,4096]]] ["float",""]]`, "0 4 run 0 5 41 [43 1  ]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestParseCopy(t *testing.T) {
	for name, want := range map[string]struct{ operation, kind string }{
		"Memcpy DtoH (Device -> Pageable)":        {"[CUDA memcpy Device-to-Host]", "Device -> Pageable"},
		"Memcpy HtoD (Pinned -> Device)":          {"[CUDA memcpy Host-to-Device]", "Pinned -> Device"},
		"Memcpy PtoP (Device -> Device)":          {"[CUDA memcpy Peer-to-Peer]", "Device -> Device"},
		"Memcpy HtoD (Managed Static -> Unknown)": {"[CUDA memcpy Host-to-Device]", "Managed Static -> Unknown"},
		"Memcpy HtoD (Unknown -> Device)":         {"[CUDA memcpy Host-to-Device]", "Unknown -> Device"},
		"Memcpy HtoD":                             {"[CUDA memcpy Host-to-Device]", ""}, // from an export without copy kinds
		"Memcpy Unified HtoD (Managed -> Device)": {"[CUDA memcpy Unified Host-to-Device]", "Managed -> Device"},
		"Memset (Device)":                         {MemsetName, "Device"},
		"Memset (Unknown)":                        {MemsetName, ""},
		"Memcpy":                                  {"Memcpy", ""},
		"CopyDeviceToHost":                        {"CopyDeviceToHost", ""}, // ROCm
		"":                                        {"", ""},
	} {
		operation, kind := parseCopy(name)
		if operation != want.operation || kind.String() != want.kind {
			t.Errorf("%q is %q between %q, want %+v", name, operation, kind, want)
		}
		if kind.Pageable() != strings.Contains(name, "Pageable") {
			t.Errorf("%q is pageable: %v", name, kind.Pageable())
		}
	}
}

// Whether attention is causal, and its window, follow from the inputs, which differ between operators.
func TestMask(t *testing.T) {
	syms, args := trace.NewSymbols(), trace.NewArgs()
	put := args.Appender()
	inputs := func(values ...string) trace.ArgsID {
		list := trace.ArgList{}
		for _, v := range values {
			list = list.String(0, v)
		}
		return put.Put(trace.ArgList{}.Array(syms.Intern(ConcreteInputs), list))
	}
	for _, c := range []struct {
		name   string
		inputs trace.ArgsID
		want   Mask
	}{
		{"aten::_scaled_dot_product_flash_attention", inputs("", "", "", "0.", "True", "False", "0.125"), Mask{Causal, 0}},
		{"aten::_scaled_dot_product_flash_attention", inputs("", "", "", "0.", "False", "True", "0.125"), Mask{Bidirectional, 0}},
		{"aten::_scaled_dot_product_efficient_attention", inputs("", "", "", "", "False", "0.", "True", ""), Mask{Causal, 0}},
		{"aten::_scaled_dot_product_flash_attention", inputs("", "", ""), Mask{}},
		{"aten::_scaled_dot_product_flash_attention", inputs("", "", "", "", "", "True"), Mask{}},
		{"aten::_scaled_dot_product_flash_attention", 0, Mask{}},
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "True", "127", "0", "0."), Mask{Causal, 128}},
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "True", "-1", "-1", "0."), Mask{Causal, 0}},
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "False", "127", "0", "0."), Mask{Causal, 128}}, // no keys after the query
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "False", "100", "27", "0."), Mask{Bidirectional, 128}},
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "False", "100", "-1", "0."), Mask{Bidirectional, 0}}, // all keys after it
		{"flash_attn::_flash_attn_forward", inputs("", "", "", "0.", "0.125", "True", "a", "", ""), Mask{Causal, 0}},
		{"_vllm_fa3_C::fwd", inputs(append(make([]string, 24), "True", "127", "0", "0", "0.")...), Mask{Causal, 128}},
		{"sgl_kernel::fwd", inputs(append(make([]string, 24), "True", "4095", "0", "0", "0.")...), Mask{Causal, 4096}},
		{"_vllm_fa2_C::varlen_fwd", inputs(append(make([]string, 15), "True", "1023", "0", "0.")...), Mask{Causal, 1024}},
		{"vllm::unified_attention_with_output", inputs("", "", "", "", "", "", "", ""), Mask{}}, // the layer sets its window
		{"aten::mm", inputs("", "", "", "0.", "True"), Mask{}},
	} {
		name := syms.Intern(c.name)
		if got := newInputTexts(syms, args).mask(name, c.inputs); got != c.want {
			t.Errorf("%s, %d: %v, want %v", c.name, c.inputs, got, c.want)
		}
	}
}

// Device memory held by PyTorch's allocators becomes samples; host memory does not.
func TestHeldOfMemory(t *testing.T) {
	syms, args := trace.NewSymbols(), trace.NewArgs()
	put := args.Appender()
	held := func(kind, device, allocated, reserved int64) trace.ArgsID {
		return put.Put(trace.ArgList{}.Int(syms.Intern("Total Reserved"), reserved).Int(syms.Intern("Total Allocated"), allocated).
			Int(syms.Intern("Device Id"), device).Int(syms.Intern("Device Type"), kind))
	}
	instant := func(row int32, name string, at trace.Time, id trace.ArgsID) Instant {
		return Instant{Time: at, Row: row, Name: syms.Intern(name), Args: id}
	}
	p := &Profile{
		Rows: []Row{{Kind: RowThread, PID: 41}, {Kind: RowThread, Part: "other"}},
		Instants: []Instant{
			instant(0, "[memory]", 3, held(1, 2, 100, 400)), instant(0, "[memory]", 4, held(0, 0, 8, 0)), instant(0, "Record Window End", 5, 0),
			instant(1, "[memory]", 6, held(1, 2, 100, 400)), instant(0, "[memory]", 7, held(6, 0, 50, 60)), instant(0, "[memory]", 8, 0),
		},
	}
	st := p.Stream(syms, args, func(part string) (rank, pid int32) { return int32(len(part)) * -1, 41 })
	var got []string
	st.CounterValues(func(s *CounterValue) bool {
		got = append(got, fmt.Sprintf("%d %d %s %s %g %s %v", s.Time, s.Rank, syms.Name(s.Source), syms.Name(s.Name), s.Value, syms.Name(s.Unit), s.Kind == MemoryCounter))
		return len(got) < 3
	})
	want := []string{"3 0 GPU 2 memory allocated 100 bytes true", "3 0 GPU 2 memory reserved 400 bytes true", "7 0 GPU 0 memory allocated 50 bytes true"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
