// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// TestRelayPassesRequestsOnUnderTheTokenOfTheRun sends requests to an endpoint with a certificate authority that only
// the pod knows.
func TestRelayPassesRequestsOnUnderTheTokenOfTheRun(t *testing.T) {
	var asked []string
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get(tinker.HeaderAPIKey))
		_, _ = io.WriteString(w, "answer")
	}))
	defer endpoint.Close()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	golden, err := os.ReadFile(filepath.Join("..", "..", "internal", "contract", "testdata", "run-file.v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	given, err := contract.DecodeRunFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	given.Fixed.BaseURL = endpoint.URL
	if given.SpecDigest, err = contract.SpecDigest(given.Fixed); err != nil {
		t.Fatal(err)
	}
	encoded, err := contract.EncodeRunFile(given)
	if err != nil {
		t.Fatal(err)
	}
	file := write("run.json", encoded)
	variables := map[string]string{"TINKER_API_KEY": "tml-run", transport.CAVariable: write("ca.crt",
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw}))}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- passRequests(ctx, []string{"--run-file", file, "--listen", at},
			func(name string) string { return variables[name] }, &stderr)
	}()
	send := func(path string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(tinker.HeaderAPIKey, "tml-person")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if status, _ := send("/api/v1/checkpoints?limit=1"); status == http.StatusOK || time.Now().After(deadline) {
			break
		}
	}
	if status, text := send("/", tinker.HeaderRelayFile, endpoint.URL+"/archives/x?signed"); text != "answer" {
		t.Errorf("fetching a file: %d %s", status, text)
	}
	if status, _ := send("/", tinker.HeaderRelayFile, "file:///etc/passwd"); status != http.StatusBadRequest {
		t.Errorf("fetching a file of the pod: status %d, want 400", status)
	}
	want := []string{"GET /api/v1/checkpoints?limit=1 tml-run", "GET /archives/x?signed "}
	if strings.Join(asked, ",") != strings.Join(want, ",") {
		t.Errorf("the endpoint was asked %q, want %q", asked, want)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
