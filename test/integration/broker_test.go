// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	tinkerwire "github.com/tinker-operator/tinker-operator/internal/tinker"
	tinkerclient "github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

const brokerAPIKey = "tml-platform"

// brokers runs the processes of an endpoint's broker before a simulator, and does the work of their Service.
type brokers struct {
	namespace, folder, program, upstream string
	tokenKey                             []byte
	// claim is the TinkerEndpoint.
	claim   *v1alpha1.TinkerEndpoint
	mu      sync.Mutex
	running []*brokerProcess
	// address is the address of the Service.
	address string
	// serving is the address of the process that was ready at the last probe.
	serving atomic.Pointer[string]
}

// brokerProcess is a process of the broker.
type brokerProcess struct {
	command        *exec.Cmd
	address, probe string
	exited         chan struct{}
	log            *bytes.Buffer
}

// newBrokers builds the program and prepares the files that its pods mount.
func newBrokers(namespace string) *brokers {
	GinkgoHelper()
	config := tinkerwire.DefaultServerConfig()
	config.PJWTAuthEnabled = true
	_, upstream := simulatortest.Serve(GinkgoT(), tinkersim.Options{APIKey: brokerAPIKey, Config: &config})
	b := &brokers{namespace: namespace, folder: GinkgoT().TempDir(), upstream: upstream,
		tokenKey: bytes.Repeat([]byte{5}, 32)}
	b.program = filepath.Join(b.folder, "broker")
	command("go", "build", "-o", b.program, "./cmd/broker")
	for name, content := range map[string][]byte{"key/api-key": []byte(brokerAPIKey), "key/token-key": b.tokenKey} {
		b.write(name, content)
	}
	b.writeCertificate()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	Expect(kube.Create(context.Background(), made)).To(Succeed())
	b.claim = &v1alpha1.TinkerEndpoint{}
	Expect(yaml.UnmarshalStrict([]byte(smallestEndpoint), b.claim)).To(Succeed())
	b.claim.Name = namespace
	Expect(kube.Create(context.Background(), b.claim)).To(Succeed())
	DeferCleanup(func() { Expect(kube.Delete(context.Background(), b.claim)).To(Succeed()) })
	b.claimFor(namespace)
	b.serveFront()
	return b
}

func (b *brokers) write(name string, content []byte) {
	GinkgoHelper()
	path := filepath.Join(b.folder, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
}

// writeCertificate writes a self-signed certificate of the loopback address.
func (b *brokers) writeCertificate() {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	b.write("tls/tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	b.write("tls/tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// claimFor makes the release of a namespace serve the endpoint, which has the name of the namespace.
func (b *brokers) claimFor(namespace string) {
	GinkgoHelper()
	b.claim.Status.Namespace = namespace
	Expect(kube.Status().Update(context.Background(), b.claim)).To(Succeed())
}

// settle writes the settings, as the manager does.
func (b *brokers) settle(generation int64, runs ...string) {
	GinkgoHelper()
	settings := endpoint.Settings{Endpoint: b.namespace, Generation: generation, BaseURL: b.upstream}
	for _, uid := range runs {
		settings.Runs = append(settings.Runs, endpoint.Run{UID: uid, Namespace: "team", Name: uid, Weight: 1})
	}
	encoded, err := json.Marshal(settings)
	Expect(err).NotTo(HaveOccurred())
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: endpoint.SettingsName(b.namespace)},
		Data:       map[string]string{endpoint.SettingsKey: string(encoded)}}
	err = kube.Create(context.Background(), stored)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = kube.Update(context.Background(), stored)
	}
	Expect(err).NotTo(HaveOccurred())
}

// start starts a process that uses the same records as the others.
func (b *brokers) start() *brokerProcess {
	GinkgoHelper()
	p := &brokerProcess{address: freeAddress(), probe: freeAddress(), exited: make(chan struct{}), log: &bytes.Buffer{}}
	p.command = exec.Command(b.program, "--endpoint="+b.namespace, "--namespace="+b.namespace, "--listen="+p.address,
		"--health-listen="+p.probe, "--dir="+filepath.Join(b.folder, "records"), "--tls-dir="+filepath.Join(b.folder, "tls"),
		"--key-dir="+filepath.Join(b.folder, "key"), "--kubeconfig="+kubeconfig)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	Expect(p.command.Start()).To(Succeed())
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, p)
	DeferCleanup(func() {
		_ = p.command.Process.Kill()
		<-p.exited
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Printf("--- broker %s\n%s\n", p.address, p.log.String())
		}
	})
	return p
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// leader returns the process that is ready, or nil.
func (b *brokers) leader() *brokerProcess {
	b.mu.Lock()
	running := slices.Clone(b.running)
	b.mu.Unlock()
	for _, p := range running {
		resp, err := http.Get("http://" + p.probe + "/readyz")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return p
		}
	}
	return nil
}

// serveFront connects clients with the process that was ready at the last probe, as a Service does if its pods are
// probed every second. Without a ready process it refuses connections.
func (b *brokers) serveFront() {
	GinkgoHelper()
	b.address = freeAddress()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go func() {
		for ctx.Err() == nil {
			if p := b.leader(); p != nil {
				b.serving.Store(&p.address)
				b.accept(ctx)
			}
			time.Sleep(time.Second)
		}
	}()
}

// accept accepts connections while a process is ready.
func (b *brokers) accept(ctx context.Context) {
	listener, err := net.Listen("tcp", b.address)
	if err != nil {
		return
	}
	go func() {
		defer listener.Close()
		for ctx.Err() == nil {
			p := b.leader()
			if p == nil {
				return
			}
			b.serving.Store(&p.address)
			time.Sleep(time.Second)
		}
	}()
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go b.connect(from)
	}
}

func (b *brokers) connect(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", *b.serving.Load())
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// clientOf returns a client of the front with a token.
func (b *brokers) clientOf(token string) *tinkerclient.Client {
	GinkgoHelper()
	secure, err := transport.New(transport.Options{CAFile: filepath.Join(b.folder, "tls", "tls.crt")})
	Expect(err).NotTo(HaveOccurred())
	c, err := tinkerclient.New(tinkerclient.Config{BaseURL: "https://" + b.address, APIKey: token,
		HTTP: &http.Client{Transport: secure}})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// trained returns the number of tokens that a run has trained on according to the ConfigMaps of usage.
func (b *brokers) trained(g Gomega, uid string) (tokens int64) {
	var stored corev1.ConfigMapList
	g.Expect(kube.List(context.Background(), &stored, client.InNamespace(b.namespace))).To(Succeed())
	for _, config := range stored.Items {
		rows, err := meter.DecodeUsage(config.Data[endpoint.UsageKey])
		g.Expect(err).NotTo(HaveOccurred())
		for _, row := range rows {
			if row.UID == uid && row.Model == tinkersim.ModelName {
				tokens += row.Tokens.Train
			}
		}
	}
	return tokens
}

// report returns the newest report.
func (b *brokers) report(g Gomega) endpoint.Report {
	var stored corev1.ConfigMap
	key := client.ObjectKey{Namespace: b.namespace, Name: endpoint.ReportName(b.namespace)}
	g.Expect(kube.Get(context.Background(), key, &stored)).To(Succeed())
	var report endpoint.Report
	g.Expect(json.Unmarshal([]byte(stored.Data[endpoint.ReportKey]), &report)).To(Succeed())
	return report
}

// training is a model that takes the same steps whichever process passes its requests on.
type training struct {
	client  *tinkerclient.Client
	session string
	model   *tinkerclient.Model
	longest time.Duration
	steps   int64
}

func newTraining(c *tinkerclient.Client) *training {
	GinkgoHelper()
	ctx := context.Background()
	t := &training{client: c}
	var err error
	t.session, err = c.CreateSession(ctx, tinkerclient.SessionRequest{})
	Expect(err).NotTo(HaveOccurred())
	t.model, err = c.CreateModel(ctx, tinkerwire.CreateModelRequest{Session: t.session, BaseModel: tinkersim.ModelName,
		Lora: tinkerwire.LoraConfig{Rank: 4, Seed: new(int64(3)), TrainAttn: true, TrainMLP: true, TrainUnembed: true}})
	Expect(err).NotTo(HaveOccurred())
	return t
}

// step takes a step, and notes how long it took if that is the longest.
func (t *training) step() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	text := []int32{1, int32(t.steps%7) + 2, 3}
	pass, err := t.model.ForwardBackward(ctx, []tinkerwire.Datum{{ModelInput: tinkerwire.Text(text),
		LossFnInputs: map[string]tinkerwire.Tensor{tinkerwire.InputTargetTokens: tinkerwire.Ints([]int64{2, 3, 4}),
			tinkerwire.InputWeights: tinkerwire.Floats([]float32{1, 1, 1})}}},
		tinkerwire.Loss{Name: tinkerwire.LossCrossEntropy})
	Expect(err).NotTo(HaveOccurred())
	_, err = pass.Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	step, err := t.model.OptimStep(ctx, tinkerwire.DefaultAdam())
	Expect(err).NotTo(HaveOccurred())
	_, err = step.Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	t.longest = max(t.longest, time.Since(began))
	t.steps++
}

// stepUntil takes steps until a process other than gone serves, and returns it with the time of the longest step.
func (t *training) stepUntil(b *brokers, gone *brokerProcess) (serving *brokerProcess, longest time.Duration) {
	GinkgoHelper()
	t.longest = 0
	for serving == nil || serving == gone {
		t.step()
		serving = b.leader()
	}
	t.step()
	return serving, t.longest
}

// logprobs returns the log-probabilities of a text at the model's weights.
func (t *training) logprobs() []float32 {
	GinkgoHelper()
	ctx := context.Background()
	saved, err := t.model.SaveSampler(ctx, tinkerclient.SaveRequest{Name: "end"})
	Expect(err).NotTo(HaveOccurred())
	weights, err := saved.Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	sampler, err := t.client.CreateSamplingSession(ctx, t.session, 0, weights.Path, "")
	Expect(err).NotTo(HaveOccurred())
	logprobs, err := t.client.ComputeLogprobs(ctx, sampler, 1, []int32{1, 2, 3, 4})
	Expect(err).NotTo(HaveOccurred())
	return logprobs[1:]
}

var _ = Describe("The broker of a TinkerEndpoint", Label("broker"), func() {
	It("fails over and rolls out, and loses nothing", func() {
		const run = "0a1b"
		b := newBrokers(fmt.Sprintf("broker-%d", time.Now().UnixNano()))
		first := b.start()
		b.settle(1, run)
		Eventually(b.leader).Should(Equal(first))
		standby := b.start()
		t := newTraining(b.clientOf(contract.RunToken(b.tokenKey, run)))

		By("killing the broker that serves")
		time.AfterFunc(time.Second, func() { _ = first.command.Process.Kill() })
		second, outage := t.stepUntil(b, first)
		AddReportEntry("outage after a kill", outage, ReportEntryVisibilityAlways)
		Expect(second).To(Equal(standby))
		Eventually(first.exited).Should(BeClosed())

		By("ending the broker that serves, as a roll-out does")
		standby = b.start()
		time.AfterFunc(time.Second, func() { _ = second.command.Process.Signal(os.Interrupt) })
		third, outage := t.stepUntil(b, second)
		AddReportEntry("outage of a roll-out", outage, ReportEntryVisibilityAlways)
		Expect(third).To(Equal(standby))
		Eventually(second.exited).Should(BeClosed())
		Expect(second.command.ProcessState.ExitCode()).To(BeZero())

		By("reading what was counted: all steps, and for the kill as much as one second more")
		tokens := 3 * t.steps
		Eventually(b.trained).WithArguments(run).Should(And(
			BeNumerically(">=", tokens), BeNumerically("<", 2*tokens)))

		By("comparing with a training that nothing disturbed")
		got := t.logprobs()
		direct, err := tinkerclient.New(tinkerclient.Config{BaseURL: b.upstream, APIKey: brokerAPIKey})
		Expect(err).NotTo(HaveOccurred())
		undisturbed := newTraining(direct)
		for undisturbed.steps < t.steps {
			undisturbed.step()
		}
		Expect(got).To(Equal(undisturbed.logprobs()))
	})

	It("takes up changes of settings, of keys and of its certificate", func() {
		b := newBrokers(fmt.Sprintf("broker-%d", time.Now().UnixNano()))
		b.settle(1)
		p := b.start()
		Eventually(b.leader).Should(Equal(p))
		capabilities := func(uid string) func() error {
			c := b.clientOf(contract.RunToken(b.tokenKey, uid))
			return func() error {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				_, err := c.Capabilities(ctx)
				return err
			}
		}
		ask := capabilities("late")
		Expect(ask()).To(MatchError(ContainSubstring("has this token")))
		b.settle(2, "late")
		Eventually(ask).Should(Succeed())
		Eventually(func(g Gomega) { g.Expect(b.report(g).Generation).To(Equal(int64(2))) }).Should(Succeed())

		b.write("key/api-key", []byte("tml-revoked"))
		Eventually(ask).ShouldNot(Succeed())
		Eventually(func(g Gomega) { g.Expect(b.report(g).KeyRefused).NotTo(BeEmpty()) }).Should(Succeed())
		b.write("key/api-key", []byte(brokerAPIKey+"\n"))
		Eventually(func(g Gomega) { g.Expect(b.report(g).KeyRefused).To(BeEmpty()) }).Should(Succeed())
		Eventually(ask).Should(Succeed())

		earlier := b.report(Default)
		Eventually(func(g Gomega) {
			g.Expect(b.report(g).Time).To(BeTemporally(">", earlier.Time), "an unchanged report grows old")
		}).Should(Succeed())

		By("having another release take the endpoint over")
		b.claimFor("another")
		Eventually(b.leader).Should(BeNil())
		Expect(ask()).NotTo(Succeed())
		Expect(p.log.String()).To(ContainSubstring(`the release in namespace \"another\" serves`))
		b.claimFor(b.namespace)
		Eventually(ask).Should(Succeed())

		b.writeCertificate()
		Eventually(func() error { return capabilities("late")() }).Should(Succeed())
		resp, err := http.Get("http://" + p.probe + "/metrics")
		Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(`tinker_operator_broker_requests_total{code="TokenRefused"`))
		Expect(string(text)).To(ContainSubstring("tinker_operator_broker_serving 1"))
	})
})
