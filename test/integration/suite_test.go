// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration runs the controllers against a real API server and the real kube-controller-manager: Jobs, their
// back-off and garbage collection are Kubernetes' own. There is no kubelet and no scheduler; the tests decide what
// becomes of pods, and answer heartbeats instead of learners.
//
// `hack/cluster/cluster binaries` installs the binaries; KUBE_BINARIES names another folder.
package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// The servers that all specs share; each spec has a namespace and a manager of its own.
var (
	binaries     string
	controlPlane *envtest.Environment
	scheme       = runtime.NewScheme()
	apiConfig    *rest.Config
	kube         client.Client
	kubeconfig   string
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	if deadline, ok := t.Deadline(); ok {
		// Ginkgo names the spec that runs when the time is over, and stops the servers.
		suite.Timeout = time.Until(deadline) - time.Minute
	}
	RunSpecs(t, "controllers on a real control plane", suite, reporter)
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(5 * time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	log.SetLogger(logr.Discard())
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	binaries = binariesFolder()
	controlPlane = &envtest.Environment{
		Scheme:                   scheme,
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		BinaryAssetsDirectory:    binaries,
		ControlPlaneStartTimeout: 5 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	controlPlane.ControlPlane.GetAPIServer().Configure().
		// The usual range of envtest has addresses for the Services of 250 runs.
		Set("service-cluster-ip-range", "10.0.0.0/16").
		// Objects must not block the deletion of owners that the manager may not finalize.
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	var err error
	apiConfig, err = controlPlane.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	apiConfig.QPS = -1

	kube, err = client.New(apiConfig, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	user, err := controlPlane.AddUser(envtest.User{Name: "tests", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	content, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, content, 0o600)).To(Succeed())
	startControllerManager()
})

// binariesFolder finds the binaries, or says how to make them.
func binariesFolder() string {
	folder := os.Getenv("KUBE_BINARIES")
	if folder == "" {
		folder = filepath.Join("..", "..", ".cluster", "bin")
	}
	folder, err := filepath.Abs(folder)
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		Expect(filepath.Join(folder, name)).To(BeAnExistingFile(), "make it with: hack/cluster/cluster binaries")
	}
	return folder
}

// startControllerManager runs the controllers that are tested, and no others.
func startControllerManager() {
	GinkgoHelper()
	logFile, err := os.Create(filepath.Join(GinkgoT().TempDir(), "kube-controller-manager.log"))
	Expect(err).NotTo(HaveOccurred())
	command := exec.Command(filepath.Join(binaries, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join([]string{"job-controller", "garbage-collector-controller", "namespace-controller",
			"endpointslice-controller", "clusterrole-aggregation-controller",
			"validatingadmissionpolicy-status-controller"}, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--min-resync-period=1h",
	)
	command.Stdout, command.Stderr = logFile, logFile
	Expect(command.Start()).To(Succeed())
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	DeferCleanup(func() {
		_ = command.Process.Kill()
		<-exited
		_ = logFile.Close()
	})
	select {
	case err := <-exited:
		content, _ := os.ReadFile(logFile.Name())
		Fail(fmt.Sprintf("kube-controller-manager exited: %v\n%s", err, content))
	case <-time.After(500 * time.Millisecond):
	}
}

// kubectl runs the real kubectl in a namespace and returns its output.
func kubectl(namespace string, arguments ...string) (string, error) {
	arguments = append([]string{"--kubeconfig", kubeconfig, "--namespace", namespace}, arguments...)
	command := exec.Command(filepath.Join(binaries, "kubectl"), arguments...)
	command.Env = append(os.Environ(), "HOME="+filepath.Dir(kubeconfig))
	output, err := command.CombinedOutput()
	return string(output), err
}
