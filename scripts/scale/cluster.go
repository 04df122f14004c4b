//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// task is what a task of the array runs. In the first round every third one is killed while it
// works, after a random time.
const task = `cd %[1]s
%[2]s extract -o %[3]s --shard $SLURM_ARRAY_TASK_ID/%[5]d %[4]s 2>/dev/null &
pid=$!
if [ "$KILL" = yes ] && [ $((RANDOM %% 3)) = 0 ]; then
	sleep 0.0$((RANDOM %% 10))
	kill -9 $pid && echo killed
fi
wait $pid
`

// underSlurm extracts in one task for each rank, twice: in the first round some are killed. A
// job that depends on the second round prints the report.
func (b *bench) underSlurm(ctx context.Context, n int) error {
	start := time.Now()
	c, err := startSlurm(ctx, filepath.Join(b.cache, "slurm"), filepath.Join(b.dir, "slurm"))
	if err != nil {
		return err
	}
	defer c.stop()
	script := filepath.Join(b.dir, "task.sh")
	text := "#!/bin/bash\n" + fmt.Sprintf(task, b.dir, b.program, datasetName, tracesName, n)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return err
	}
	array := fmt.Sprintf("--array=0-%d", n-1)
	first, err := c.submit(array, "--export=ALL,KILL=yes", "--output="+filepath.Join(b.dir, "first.%a"), script)
	if err != nil {
		return err
	}
	again, err := c.submit(array, "--export=ALL,KILL=no", "--dependency=afterany:"+first, "--output="+filepath.Join(b.dir, "again.%a"), script)
	if err != nil {
		return err
	}
	printed := filepath.Join(b.dir, "printed")
	reduce := fmt.Sprintf("cd %s && %s report %s", b.dir, b.program, datasetName)
	if _, err := c.submit("--wait", "--dependency=afterok:"+again, "--kill-on-invalid-dep=yes", "--output="+printed, "--error=/dev/null", "--wrap", reduce); err != nil {
		return err
	}
	killed, err := countKilled(b.dir)
	if err != nil {
		return err
	}
	log.Printf("Slurm: %d tasks, %d of them killed, all run again, and the report, in %.0f s", n, killed, time.Since(start).Seconds())
	got, err := os.ReadFile(printed)
	if err != nil {
		return err
	}
	want, err := b.run("report", tracesName)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, bytes.ReplaceAll(got, []byte(datasetName), []byte(tracesName))) {
		return fmt.Errorf("the job printed\n%s\nwant\n%s", got, want)
	}
	return nil
}

// countKilled counts the tasks of the first round that were killed.
func countKilled(dir string) (n int, err error) {
	outputs, err := filepath.Glob(filepath.Join(dir, "first.*"))
	if err != nil {
		return 0, err
	}
	for _, name := range outputs {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		n += strings.Count(string(text), "killed\n")
	}
	return n, nil
}
