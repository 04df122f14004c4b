//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// packages are needed by the daemons and the commands beyond a minimal Debian.
var packages = []string{"slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2", "libhwloc15", "liblua5.1-0"}

// errNoSlurm says that Slurm cannot be had here: not Debian, or no mirror in reach.
var errNoSlurm = errors.New("cannot get Slurm")

// A slurm is a cluster of one node, started as an ordinary user would run any program: from
// Debian's packages, unpacked into a private folder. Nothing is installed, and everything it
// writes is in that folder.
type slurm struct {
	root    string // unpacked packages
	dir     string // configuration, state, and logs
	env     []string
	daemons []*exec.Cmd
}

// startSlurm gets the packages into cache, unless they are there, and starts a cluster that
// keeps its state in dir.
func startSlurm(ctx context.Context, cache, dir string) (*slurm, error) {
	root, err := unpack(ctx, cache)
	if err != nil {
		return nil, err
	}
	lib := filepath.Join(root, "usr/lib", triplet())
	c := &slurm{root: root, dir: dir}
	c.env = append(os.Environ(), "SLURM_CONF="+c.path("slurm.conf"),
		"LD_LIBRARY_PATH="+lib+":"+filepath.Join(lib, "slurm-wlm"), "PATH="+filepath.Join(root, "usr/bin")+":"+os.Getenv("PATH"))
	for _, step := range []func() error{c.configure, c.startMunge, c.startDaemons, c.wait} {
		if err := step(); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

// triplet returns how Debian names the folder of libraries.
func triplet() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}

func (c *slurm) path(name string) string { return filepath.Join(c.dir, name) }

// unpack downloads and unpacks the packages once.
func unpack(ctx context.Context, cache string) (string, error) {
	root, done := filepath.Join(cache, "root"), filepath.Join(cache, "unpacked")
	if _, err := os.Stat(done); err == nil {
		return root, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	download := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=0", "download"}, packages...)...)
	download.Dir = cache
	if out, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: apt-get download: %v: %s", errNoSlurm, err, lastLine(out))
	}
	debs, err := filepath.Glob(filepath.Join(cache, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range debs {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", deb, root).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: dpkg -x %s: %v: %s", errNoSlurm, deb, err, lastLine(out))
		}
	}
	return root, os.WriteFile(done, nil, 0o644)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// configure writes the key of munge and slurm.conf.
func (c *slurm) configure() error {
	for _, dir := range []string{"munge", "spool", "state"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 1024)
	rand.Read(key)
	if err := os.WriteFile(c.path("munge.key"), key, 0o400); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	user := os.Getenv("USER")
	if os.Getuid() == 0 {
		user = "root"
	}
	conf := strings.NewReplacer("$HOST", host, "$DIR", c.dir, "$USER", user, "$CTLD", fmt.Sprint(ports[0]), "$SLURMD", fmt.Sprint(ports[1]),
		"$PLUGINS", filepath.Join(c.root, "usr/lib", triplet(), "slurm-wlm"), "$CPUS", fmt.Sprint(runtime.NumCPU())).Replace(slurmConf)
	return os.WriteFile(c.path("slurm.conf"), []byte(conf), 0o644)
}

// slurmConf asks the scheduler to look at its queue twice a second; a real cluster takes more
// time, and has more nodes.
const slurmConf = `ClusterName=scale
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$CTLD
SlurmdPort=$SLURMD
SlurmUser=$USER
SlurmdUser=$USER
AuthType=auth/munge
AuthInfo=socket=$DIR/munge/socket
CryptoType=crypto/munge
PluginDir=$PLUGINS
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
JobRequeue=1
MaxArraySize=10001
SchedulerParameters=batch_sched_delay=0,sched_min_interval=200000,sched_interval=1
NodeName=$HOST NodeAddr=127.0.0.1 CPUs=$CPUS State=UNKNOWN
PartitionName=all Nodes=$HOST Default=YES MaxTime=INFINITE State=UP
`

// freePorts returns ports that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// daemon starts a program of the packages in the foreground.
func (c *slurm) daemon(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.root, "usr/sbin", name), args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(c.path(name + ".out"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %v", errNoSlurm, err)
	}
	c.daemons = append(c.daemons, cmd)
	return nil
}

func (c *slurm) startMunge() error {
	socket := c.path("munge/socket")
	err := c.daemon("munged", "--foreground", "--force", "--key-file="+c.path("munge.key"), "--socket="+socket,
		"--pid-file="+c.path("munge/pid"), "--log-file="+c.path("munge/log"), "--seed-file="+c.path("munge/seed"))
	if err != nil {
		return err
	}
	return until(func() bool { _, err := os.Stat(socket); return err == nil }, "munged has no socket: see "+c.path("munged.out"))
}

func (c *slurm) startDaemons() error {
	if err := c.daemon("slurmctld-wlm", "-D", "-c", "-f", c.path("slurm.conf")); err != nil {
		return err
	}
	return c.daemon("slurmd-wlm", "-D", "-c", "-f", c.path("slurm.conf"), "-d", filepath.Join(c.root, "usr/sbin/slurmstepd-wlm"))
}

// wait returns when the node is idle.
func (c *slurm) wait() error {
	return until(func() bool {
		out, err := c.command("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	}, "the node does not come up: see "+c.path("slurmctld.log"))
}

// until waits for a condition, at most half a minute.
func until(ok func() bool, otherwise string) error {
	for range 300 {
		if ok() {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%w: %s", errNoSlurm, otherwise)
}

// command returns a command of Slurm, such as sbatch, for this cluster.
func (c *slurm) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.root, "usr/bin", name), args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	return cmd
}

// submit submits a job and returns its number. Arguments are those of sbatch.
func (c *slurm) submit(args ...string) (string, error) {
	out, err := c.command("sbatch", append([]string{"--parsable"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sbatch: %v: %s", err, lastLine(out))
	}
	return strings.TrimSpace(string(out)), nil
}

// stop ends the cluster and all of its jobs.
func (c *slurm) stop() {
	for i := len(c.daemons) - 1; i >= 0; i-- {
		d := c.daemons[i]
		syscall.Kill(-d.Process.Pid, syscall.SIGTERM)
		stopped := make(chan struct{})
		go func() { d.Wait(); close(stopped) }()
		select {
		case <-stopped:
		case <-time.After(5 * time.Second):
			syscall.Kill(-d.Process.Pid, syscall.SIGKILL)
			<-stopped
		}
	}
}
