// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// program is the manager in a process of its own.
type program struct {
	command *exec.Cmd
	metrics string
}

// startManager builds the manager like the image's, and runs it with the chart's settings, and with Go's memory limit
// for the number of runs.
func (f *fleet) startManager() program {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	key := filepath.Join(folder, "manager-key")
	Expect(os.WriteFile(key, f.key, 0o600)).To(Succeed())
	if f.binary == "" {
		f.binary = filepath.Join(folder, "manager")
		output, err := exec.Command("go", "build", "-o", f.binary, "../../cmd/manager").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
	}
	log, err := os.Create(filepath.Join(folder, "manager.log"))
	Expect(err).NotTo(HaveOccurred())
	metrics := freeport.Address(GinkgoTB())
	command := exec.Command(f.binary, "--kubeconfig="+kubeconfig, "--manager-key-file="+key,
		"--image=tinker-operator:test",
		"--namespaces="+f.env.namespace, "--leader-election-namespace="+f.env.namespace,
		"--metrics-insecure", "--metrics-bind-address="+metrics, "--health-probe-bind-address=0")
	goMemLimit := "48MiB"
	if _, measured := scale(); measured {
		goMemLimit = "192MiB"
	}
	command.Env = append(os.Environ(), "GOMEMLIMIT="+goMemLimit)
	command.Stdout, command.Stderr = log, log
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		_ = log.Close()
		if CurrentSpecReport().Failed() {
			content, _ := os.ReadFile(log.Name())
			AddReportEntry("log of the manager", ReportEntryVisibilityFailureOrVerbose,
				string(content[max(0, len(content)-10_000):]))
		}
	})
	return program{command, metrics}
}

// kill ends the process as a lost node does, without releasing its lease.
func (p program) kill() {
	GinkgoHelper()
	Expect(p.command.Process.Kill()).To(Succeed())
	_ = p.command.Wait()
}

// reconciles is a histogram of reconciles of runs: upToThis counts the reconciles that took at most atMost seconds.
type reconciles struct {
	count    int
	atMost   []float64
	upToThis []int
}

// reconciles reads the histogram of the process's metrics.
func (p program) reconciles() reconciles {
	GinkgoHelper()
	response, err := http.Get("http://" + p.metrics + "/metrics")
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	var found reconciles
	const bucket = `controller_runtime_reconcile_time_seconds_bucket{controller="trainingrun",le="`
	for line := range strings.Lines(string(content)) {
		rest, ok := strings.CutPrefix(line, bucket)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
		seconds, err := strconv.ParseFloat(bound, 64)
		Expect(err).NotTo(HaveOccurred())
		found.count, err = strconv.Atoi(count)
		Expect(err).NotTo(HaveOccurred())
		found.atMost, found.upToThis = append(found.atMost, seconds), append(found.upToThis, found.count)
	}
	Expect(found.count).To(BeNumerically(">", 0), "reconciles in the metrics")
	return found
}

// since returns the histogram without the reconciles that were counted before.
func (r reconciles) since(before reconciles) reconciles {
	r.count -= before.count
	for i := range r.upToThis {
		r.upToThis[i] -= before.upToThis[i]
	}
	return r
}

// p99 is the bound of the bucket that has the 99th percentile.
func (r reconciles) p99() time.Duration {
	for i, count := range r.upToThis {
		if 100*count >= 99*r.count && !math.IsInf(r.atMost[i], 1) {
			return time.Duration(r.atMost[i] * float64(time.Second))
		}
	}
	return math.MaxInt64
}

// memory is a line of the process's status, in bytes.
func (p program) memory(field string) int64 {
	GinkgoHelper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(content)) {
		if name, rest, _ := strings.Cut(line, ":"); name == field {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			Expect(err).NotTo(HaveOccurred())
			return kilobytes << 10
		}
	}
	Fail("the process has no " + field)
	return 0
}

// cpu returns the CPU time of the process so far.
func (p program) cpu() time.Duration {
	GinkgoHelper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	Expect(err).NotTo(HaveOccurred())
	// The name, in brackets, may hold spaces; user and system time are the 12th and 13th field after it.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		Expect(err).NotTo(HaveOccurred())
		ticks += n
	}
	const ticksPerSecond = 100
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
