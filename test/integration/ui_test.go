// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// pages reads the pages of kubectl tinker ui like a browser.
type pages struct {
	browser *http.Client
	host    string
	// stop ends the command and returns its exit code.
	stop func() int
}

// openPages starts kubectl tinker ui in a namespace.
func openPages(namespace string) *pages {
	GinkgoHelper()
	return openPagesAs(kubeconfig, namespace)
}

// openPagesAs does what openPages does, for another user.
func openPagesAs(kubeconfig, namespace string) *pages {
	GinkgoHelper()
	out, written := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel) // A watch keeps the API server from ending.
	env := cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: written,
		Stderr: GinkgoWriter, Now: time.Now}
	ended := make(chan int, 1)
	go func() {
		ended <- plugin.Run(ctx, env, []string{"kubectl-tinker", "ui", "--no-browser", "--kubeconfig", kubeconfig,
			"--namespace", namespace})
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	return enter(strings.TrimSpace(address), func() int {
		cancel()
		return <-ended
	})
}

// enter opens the address that admits a browser.
func enter(address string, stop func() int) *pages {
	GinkgoHelper()
	u, err := url.Parse(address)
	Expect(err).NotTo(HaveOccurred())
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	p := &pages{browser: &http.Client{Jar: jar, Timeout: time.Minute}, host: "http://" + u.Host, stop: stop}
	p.ask(http.MethodGet, u.RequestURI())
	return p
}

// ask sends a request as a page of the server does, and returns the status and the page.
func (p *pages) ask(method, path string) (int, string) {
	GinkgoHelper()
	return p.send(method, path, nil)
}

// send sends a request with a form, which may be empty.
func (p *pages) send(method, path string, form url.Values) (int, string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(context.Background(), method, p.host+path, strings.NewReader(form.Encode()))
	Expect(err).NotTo(HaveOccurred())
	if method == http.MethodPost {
		r.Header.Set("Origin", p.host)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := p.browser.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, html.UnescapeString(string(data))
}

func (p *pages) text(path string) string {
	GinkgoHelper()
	_, page := p.ask(http.MethodGet, path)
	return page
}

var _ = Describe("kubectl tinker ui", func() {
	It("follows runs, and suspends one", func() {
		w := newEnv()
		p := openPages(w.namespace)
		Expect(p.text("/")).To(ContainSubstring("No run"))
		Expect(p.text("/environments")).NotTo(ContainSubstring("not up to date"))
		run, _ := w.startedRun()
		path := "/runs/" + w.namespace + "/" + run.Name
		Eventually(func() string { return p.text("/") }).Should(ContainSubstring(`href="` + path + `"`))
		Eventually(func() string { return p.text("/environments") }).Should(ContainSubstring(">Ready<"))
		Expect(p.text("/")).NotTo(ContainSubstring("not up to date"))
		Expect(p.text(path)).To(SatisfyAll(ContainSubstring("Conditions"), ContainSubstring("tinkersim")))

		Expect(p.text(path + "/actions/suspend")).To(ContainSubstring("The API server accepts the change"))
		w.eventually(run, func(g Gomega) { g.Expect(run.Spec.Suspend).To(SatisfyAny(BeNil(), HaveValue(BeFalse()))) })
		code, page := p.ask(http.MethodPost, path+"/actions/suspend")
		Expect(code).To(Equal(http.StatusOK), page)
		w.eventually(run, func(g Gomega) { g.Expect(run.Spec.Suspend).To(HaveValue(BeTrue())) })
		Eventually(func() string { return p.text(path) }).Should(ContainSubstring("actions/resume"))
		Expect(p.stop()).To(BeZero())
	})

	It("edits a spec, which the API server checks beside its lines", func() {
		w := newEnv()
		run, learner := w.startedRun()
		p := openPages(w.namespace)
		path := "/runs/" + w.namespace + "/" + run.Name + "/spec"
		version := regexp.MustCompile(`name="version" value="([^"]*)"`)
		text := regexp.MustCompile(`(?s)<textarea[^>]*>\n(.*?)</textarea>`)
		change := func(page, step, old, changed string) (int, string) {
			spec := text.FindStringSubmatch(page)[1]
			Expect(spec).To(ContainSubstring(old))
			return p.send(http.MethodPost, path, url.Values{"version": {version.FindStringSubmatch(page)[1]}, "step": {step},
				"spec": {strings.Replace(spec, old, changed, 1)}})
		}
		page := p.text(path)
		steps := regexp.MustCompile(`steps: \d+`).FindString(text.FindStringSubmatch(page)[1])
		line := strings.Count(strings.SplitN(text.FindStringSubmatch(page)[1], steps, 2)[0], "\n") + 1
		for changed, want := range map[string]string{
			"steps: -1":   "spec.algorithm.steps",
			"steps: many": "integer",
			"stepss: 7":   "did you mean spec.algorithm.steps?",
		} {
			_, checked := change(page, "check", steps, changed)
			Expect(checked).To(SatisfyAll(ContainSubstring(want), Not(ContainSubstring(`value="apply"`))))
			Expect(checked).To(ContainSubstring(`data-line="`+strconv.Itoa(line)+`"`), changed)
		}
		_, checked := change(page, "check", steps, "steps: 77")
		Expect(checked).To(SatisfyAll(ContainSubstring(`value="apply"`), ContainSubstring("spec.algorithm.steps")))
		w.eventually(run, func(g Gomega) { g.Expect(run.Spec.Algorithm.Steps).NotTo(BeEquivalentTo(77)) })
		// Each step changes the status, but not the version of the spec.
		w.reaches(run, learner.ip, 1)
		code, answered := change(page, "apply", steps, "steps: 77")
		Expect(code).To(Equal(http.StatusOK), answered)
		w.eventually(run, func(g Gomega) { g.Expect(run.Spec.Algorithm.Steps).To(BeEquivalentTo(77)) })
		_, answered = change(page, "apply", steps, "steps: 78")
		Expect(answered).To(ContainSubstring("please apply your changes to the latest version"))
		Expect(p.stop()).To(BeZero())
	})

	It("shows a viewer everything but conversations, and tells who is logged in no longer", func() {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
		})
		account, file := w.viewer()
		p := openPagesAs(file, w.namespace)
		path := "/runs/" + w.namespace + "/" + run.Name
		Eventually(func() string { return p.text("/") }).Should(ContainSubstring(`href="` + path + `"`))
		Expect(p.text(path)).To(SatisfyAll(ContainSubstring("Conditions"), Not(ContainSubstring("Events cannot be read"))))
		Eventually(func() string { return p.text(path + "/conversations") }).Should(SatisfyAll(
			ContainSubstring("forbidden"), ContainSubstring("role edit"), ContainSubstring("The other pages show everything")))
		Expect(p.text(path + "/actions/suspend")).To(SatisfyAll(ContainSubstring("forbidden"),
			Not(ContainSubstring(`method="post"`))))
		code, page := p.ask(http.MethodPost, path+"/actions/suspend")
		Expect(code).To(Equal(http.StatusForbidden), page)

		Expect(kube.Delete(context.Background(), account)).To(Succeed())
		Eventually(func() string { return p.text(path + "/actions/suspend") }).Should(
			ContainSubstring("Unauthorized"))
		Expect(p.text("/")).To(ContainSubstring(run.Name), "what is known stays")
		Expect(p.stop()).To(BeZero())
	})

	DescribeTable("deletes the pod that reads artifacts where the process ends", func(ends syscall.Signal) {
		w := newEnv()
		run, _ := w.startedRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
		})
		process := exec.Command(pluginProgram(), "ui", "--no-browser", "--kubeconfig", kubeconfig, "--namespace", w.namespace)
		process.Env = append(os.Environ(), "XDG_CACHE_HOME="+GinkgoT().TempDir())
		process.Stderr = GinkgoWriter
		// A process inherits ignored signals, as the tests ignore SIGHUP below nohup. Notify ends that.
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		DeferCleanup(signal.Stop, hangups)
		out, err := process.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(process.Start()).To(Succeed())
		DeferCleanup(func() { _ = process.Process.Kill() })
		address, err := bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		p := enter(strings.TrimSpace(address), nil)
		readers := func() []corev1.Pod {
			var pods corev1.PodList
			Expect(kube.List(context.Background(), &pods, client.InNamespace(w.namespace),
				client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleReader})).To(Succeed())
			return pods.Items
		}
		path := "/runs/" + w.namespace + "/" + run.Name + "/conversations"
		Eventually(func() string { return p.text(path) }).Should(ContainSubstring("A pod reads the artifacts"))
		Eventually(readers).Should(HaveLen(1))
		Expect(process.Process.Signal(ends)).To(Succeed())
		Expect(process.Wait()).To(Succeed())
		Expect(readers()).To(BeEmpty())
	},
		Entry("by Ctrl-C", syscall.SIGINT), Entry("by SIGTERM", syscall.SIGTERM),
		Entry("as its terminal is closed", syscall.SIGHUP))
})

// pluginProgram builds kubectl-tinker.
func pluginProgram() string {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "kubectl-tinker")
	output, err := exec.Command("go", "build", "-o", program, "../../cmd/kubectl-tinker").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return program
}

// viewer makes a ServiceAccount with Kubernetes' role view and the chart's additions to it, and returns it with a
// kubeconfig.
func (w *env) viewer() (*corev1.ServiceAccount, string) {
	GinkgoHelper()
	ctx := context.Background()
	token := w.serviceAccountToken("viewer")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view-runs-" + w.namespace}}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list",
			"watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"pods", "events", "configmaps"},
			Verbs: []string{"get", "list", "watch"}}}
	Expect(kube.Create(ctx, role)).To(Succeed())
	DeferCleanup(func() { Expect(kube.Delete(ctx, role)).To(Succeed()) })
	Expect(kube.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "viewer"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "viewer"}}})).To(Succeed())
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: token}
	file := filepath.Join(GinkgoT().TempDir(), "config")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "viewer"}}, file
}
