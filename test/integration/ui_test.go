// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// pages are those of kubectl tinker ui, as a browser has them.
type pages struct {
	browser *http.Client
	host    string
	// stop ends the command and returns its exit code.
	stop func() int
}

// openPages starts kubectl tinker ui in a namespace.
func openPages(namespace string) *pages {
	GinkgoHelper()
	out, written := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	env := cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: written,
		Stderr: GinkgoWriter, Now: time.Now}
	ended := make(chan int, 1)
	go func() {
		ended <- plugin.Run(ctx, env, []string{"kubectl-tinker", "ui", "--no-browser", "--kubeconfig", kubeconfig,
			"--namespace", namespace})
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	u, err := url.Parse(strings.TrimSpace(address))
	Expect(err).NotTo(HaveOccurred())
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	p := &pages{browser: &http.Client{Jar: jar, Timeout: time.Minute}, host: "http://" + u.Host, stop: func() int {
		cancel()
		return <-ended
	}}
	p.ask(http.MethodGet, u.RequestURI())
	return p
}

// ask sends a request as a page of the server does, and returns the status and the page.
func (p *pages) ask(method, path string) (int, string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(context.Background(), method, p.host+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if method == http.MethodPost {
		r.Header.Set("Origin", p.host)
	}
	answer, err := p.browser.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(data)
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
})
