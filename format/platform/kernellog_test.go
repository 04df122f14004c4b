package platform

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

func readKernel(t testing.TB, text string) string {
	t.Helper()
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := series.New(syms, diags)
	in := &format.Input{Name: "dmesg", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := indexKernel(in, &format.Options{Syms: syms, Diags: diags, Series: set}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	var b strings.Builder
	for _, x := range set.Instants {
		fmt.Fprintf(&b, "%d %q %s x%d line %d: %s\n", x.Time/1e9, set.Servers[set.Places[x.Place].Server].Host, x.Kind, x.Count, x.Line, set.Syms.Name(x.Text))
	}
	return b.String()
}

// Kernel logs of every form are read. The process that caused an error is not kept, and repeated
// errors are counted.
func TestKernelForms(t *testing.T) {
	for text, want := range map[string]string{
		"[6781741.548779] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n":                                                                                       `0 "" hardware x1 line 1: Xid 79 of GPU 0000:91:00: GPU has fallen off the bus`,
		"[drm ERROR :amdgpu_job_timedout] ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3\n":                                                                                                              `0 "" hardware x1 line 1: hang of a GPU of AMD: ring gfx_0.0.0 timeout`,
		"[Fri Apr 17 19:56:43 2026] amdgpu 0000:65:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24)\n":                                                                                                      `1776455803 "" hardware x1 line 1: page fault of GPU 0000:65:00.0`,
		"maj 08 19:27:35 node9 kernel: amdgpu 0000:c2:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\n":                                                                                                fmt.Sprintf(`%d "node9" hardware x1 line 1: hang of GPU 0000:c2:00.0: its scheduler (MES) does not respond`, time.Date(logline.LastYear("", time.May, 8), time.May, 8, 19, 27, 35, 0, time.UTC).Unix()),
		"10.0.0.9: kern: warning: [2026-02-23T16:24:18.599716692Z]: NVRM: Xid (PCI:0000:48:00): 62, 00002740\n":                                                                                                 `1771863858 "10.0.0.9" hardware x1 line 1: Xid 62 of GPU 0000:48:00: 00002740`,
		"[Sun Feb 23 16:24:18 2025] NVRM: Xid (0000:03:00): 14, x\n":                                                                                                                                            `1740327858 "" hardware x1 line 1: Xid 14 of GPU 0000:03:00: x`,
		"2025-02-23T16:24:18.123456+00:00 node3 kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20009, Non-fatal\n":                                                                                          `1740327858 "node3" hardware x1 line 1: SXid 20009 of switch 0000:06:00.0: Non-fatal`,
		"Feb 23 16:24:18 node4 kernel: NVRM: Xid (PCI:0000:91:00): 31, pid=77, name=python3, Ch 00000008\n":                                                                                                     fmt.Sprintf(`%d "node4" hardware x1 line 1: Xid 31 of GPU 0000:91:00`, time.Date(logline.LastYear("", time.February, 23), time.February, 23, 16, 24, 18, 0, time.UTC).Unix()),
		"[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:2330) installed in this system has\n               NVRM: fallen off the bus and is not responding to commands.\n": `0 "" hardware x1 line 3: Xid 79 of GPU 0000:b3:00: GPU has fallen off the bus`,
		"[201.1] NVRM: Xid (PCI:0018:01:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149\n":                                                                                                `0 "" hardware x1 line 1: Xid 45 of GPU 0018:01:00: caused by previous Xid 149`,
		"[201.1] NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)\n":                                                     `0 "" hardware x1 line 1: Xid 145 of GPU 0018:01:00: RLW_RXPIPE Nonfatal XC0 i0 Link 13`,
		"[    1.000000] Out of memory: Killed process 1234 (sglang::schedul) total-vm:1kB\n":                                                                                                                    `0 "" crash x1 line 1: the kernel killed process 1234 (sglang::schedul), because the host ran out of memory`,
		"2025-02-23T16:24:18,123456+00:00 Out of memory: Killed process 77 (python3) total-vm:41234567kB, anon-rss:25165824kB, file-rss:1kB\n":                                                                  `1740327858 "" crash x1 line 1: the kernel killed process 77 (python3, which had 24.0 GiB), because the host ran out of memory`,
		"2025-02-23T16:24:18+0000 node3 kernel: Memory cgroup out of memory: Killed process 78 (ray::IDLE) total-vm:9kB, anon-rss:37760kB, \n":                                                                  `1740327858 "node3" crash x1 line 1: the kernel killed process 78 (ray::IDLE, which had 36 MiB), because its container ran out of memory`,
		"[Mar 03 2025 08:15:30] [ERROR] [tid 77] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:c1:00.0 physical id 2 port 33\n":                                                  `1740989730 "" hardware x1 line 1: SXid 20034 of switch 0000:c1:00.0: fatal, port 33`,
		"[Mar 03 2025 08:15:29] [INFO] [tid 7] Received:  header\nMessage payload details: x\n\n[Mar 03 2025 08:15:30] [ERROR] [tid 77] no GPU has handle 12\n":                                                 `1740989730 "" hardware x1 line 4: fabric manager: no GPU has handle 12`,
		"[Wed Jul 29 14:40:27 2026] mlx5_bond_0/1: QP 51291 error: local length error (0x8e 0x0 0x0)\n[Wed Jul 29 14:40:28 2026] mlx5_bond_0/1: QP 51292 error: local length error (0x8e 0x0 0x0)\n":            `1785336027 "" hardware x2 line 1: RDMA device mlx5_bond_0: local length error`,
		"[Wed Jul 29 14:41:02 2026] NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)\n":                                                                                                            `1785336062 "" hardware x1 line 1: the driver cannot start GPU 0000:09:00.0`,
		"[Wed Jul 29 14:41:02 2026] mlx5_core 0000:5e:00.0 ens6f0np0: Link down\n":                                                                                                                              `1785336062 "" hardware x1 line 1: the link of network device ens6f0np0 went down`,
		"[    2.500000] pcieport 0000:16:02.0: AER: Uncorrected (Fatal) error received: 0000:17:00.0\n":                                                                                                         `0 "" hardware x1 line 1: PCIe error of 0000:17:00.0: Uncorrected (Fatal)`,
		"[    2.500000] Memory cgroup out of memory: Killed process 77 (python3) total-vm:1kB\n":                                                                                                                `0 "" crash x1 line 1: the kernel killed process 77 (python3), because its container ran out of memory`,
		"[5615152.198606] amdgpu 0008:00:00.0: amdgpu: [gfxhub0] retry page fault (src_id:0 ring:0 vmid:3)\n":                                                                                                   `0 "" hardware x1 line 1: page fault of GPU 0008:00:00.0`,
		"[5.1] amdgpu 0000:3d:00.0: amdgpu: [mmhub0] page fault (src_id:0)\n[5.2] amdgpu 0000:3d:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x1\n":                                                             `0 "" hardware x1 line 1: page fault of GPU 0000:3d:00.0`,
		"[5.2] amdgpu 0000:3d:00.0: amdgpu:   RW: 0x1\n[5.2] amdgpu 0000:3d:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x1\n":                                                                                  `0 "" hardware x1 line 2: page fault of GPU 0000:3d:00.0`,
		"[52.198606] amdgpu 0000:03:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=120, emitted seq=122\n":                                                                                                 `0 "" hardware x1 line 1: hang of GPU 0000:03:00.0: ring comp_1.0.0 timeout`,
		"[53.198606] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n":                                                                                                                                           `0 "" hardware x1 line 1: reset of GPU 0000:03:00.0`,
		"[54.0] amdgpu 0000:03:00.0: amdgpu: socket: 0, die: 0, 2 uncorrectable hardware errors detected in umc\n":                                                                                              `0 "" hardware x1 line 1: uncorrectable errors of GPU 0000:03:00.0: 2 of its memory or logic`,
		"kern  :warn  : 2025-01-21T04:41:44,285060+00:00 pt_main_thread[2536]: segfault at 7f7 ip 00007f sp 00007f error 4 in libnccl.so.2[7f+d3]\n":                                                            `1737434504 "" hardware x1 line 1: process pt_main_thread crashed: a segmentation fault in libnccl.so.2`,
		"6,3973,227996636,-;nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing\n":                                                                          `0 "" hardware x1 line 1: nvidia-peermem: detected invalid context`,
		"4,812,2279,-;NVRM: Xid (PCI:0000:91:00): 79, \n":                                                                                                                                                       `0 "" hardware x1 line 1: Xid 79 of GPU 0000:91:00`,
		"Panic#1 Part1\n<0>[ 3098.275469] Kernel panic - not syncing: Fatal exception\n":                                                                                                                        `0 "" hardware x1 line 2: the kernel of the host panicked: Fatal exception`,
		"<1>[  201.6] BUG: unable to handle kernel NULL pointer dereference at           (null)\n":                                                                                                              `0 "" hardware x1 line 1: a bug in the kernel of the host: unable to handle kernel NULL pointer dereference`,
		"[ 1843.3] INFO: task ray::IDLE:4100 blocked for more than 120 seconds.\n":                                                                                                                              `0 "" hardware x1 line 1: process ray::IDLE hangs in the kernel of the host for more than 120 s`,
		"a\n[2.0] NVRM: Xid (PCI:0000:91:00): 79, \n[3.0] NVRM: Xid (PCI:0000:91:00): 79, \nb":                                                                                                                  `0 "" hardware x2 line 2: Xid 79 of GPU 0000:91:00`,
	} {
		if got := readKernel(t, text); got != want+"\n" {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
		if !logline.IsKernelLog([]byte(text)) {
			t.Errorf("%q is not recognized", text)
		}
	}
	healthy := "[Mar 03 2025 08:15:29] [INFO] [tid 7] multicast group 0 is freed.\nMessage payload details: NVSwitch fatal error 1 pci bus id 0:1\n"
	if got := readKernel(t, healthy); got != "" || !logline.IsKernelLog([]byte(healthy)) {
		t.Errorf("a fabric manager without errors: %q", got)
	}
	if up := "[Wed Jul 29 14:41:02 2026] mlx5_core 0000:5e:00.0 ens6f0np0: Link up\n"; readKernel(t, up) != "" {
		t.Error("a link that comes up is taken for a fault")
	}
	if logline.IsKernelLog([]byte("[2026-08-22 14:03:05 TP0] Decode batch, #running-req: 1\n")) {
		t.Error("the log of a server is taken for that of a kernel")
	}
}

// FuzzKernel reads arbitrary data: every event has a line number.
func FuzzKernel(f *testing.F) {
	f.Add("[6781741.548779] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n")
	f.Add("[Mar 03 2025 08:15:30] [ERROR] [tid 77] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:c1:00.0 physical id 2 port 33")
	f.Add("2025-02-23T16:24:18.123456+00:00 node3 kernel: SXid (PCI:0000:06:00.0): 20009, Non-fatal")
	f.Fuzz(func(t *testing.T, text string) {
		if got := readKernel(t, text); strings.Contains(got, "line 0") {
			t.Fatal(got)
		}
	})
}
