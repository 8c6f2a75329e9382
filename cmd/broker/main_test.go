// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

func TestParse(t *testing.T) {
	required := []string{"--endpoint=e", "--namespace=n", "--dir=/records", "--tls-dir=/tls", "--key-dir=/key"}
	o, err := parse(required)
	if err != nil || o.listen != ":8443" || o.endpoint != "e" {
		t.Errorf("parse = %+v, %v", o, err)
	}
	for i, flag := range required {
		name, _, _ := strings.Cut(flag, "=")
		args := append(append([]string{}, required[:i]...), required[i+1:]...)
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), name+" is required") {
			t.Errorf("parse without %s: %v, want that it is required", name, err)
		}
	}
	if _, err := parse(append(required, "--surprise")); err == nil {
		t.Error("an unknown flag is accepted")
	}
}

func TestReadKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readKeys(dir); err == nil || !strings.Contains(err.Error(), apiKeyFile) {
		t.Errorf("readKeys of an empty folder: %v, want the missing file", err)
	}
	write(apiKeyFile, "\n")
	write(tokenKeyFile, " key\n")
	if _, err := readKeys(dir); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("readKeys of an empty key: %v, want that it is empty", err)
	}
	write(apiKeyFile, "tml-a\n")
	got, err := readKeys(dir)
	if err != nil || got.api != "tml-a" || string(got.token) != " key\n" {
		t.Errorf("readKeys = %+v, %v, want the key without its line's end, and all bytes of the other", got, err)
	}
}

// recordLock is a lock that fails, or takes a while, on demand.
type recordLock struct {
	resourcelock.Interface
	err    error
	during func()
}

func (recordLock) Identity() string { return "me" }

func (l recordLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	return l.err
}

func TestLeaseIsUsedForLessThanOthersWait(t *testing.T) {
	if leaseUse >= leaseDuration || renewDeadline >= leaseUse {
		t.Fatalf("a Lease is used for %s, and lost after %s, while others wait for %s", leaseUse, renewDeadline,
			leaseDuration)
	}
	now := time.Unix(1_800_000_000, 0)
	lock := &recordLock{}
	l := &lease{Interface: lock, now: func() time.Time { return now }}
	update := func(holder string) {
		_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
	}
	check := func(what string, want bool) {
		t.Helper()
		if err := l.valid(); (err == nil) != want {
			t.Errorf("%s: valid = %v, want %t", what, err, want)
		}
	}
	check("a standby", false)
	lock.err = errors.New("conflict")
	update("me")
	check("a renewal that failed", false)
	lock.err, lock.during = nil, func() { now = now.Add(renewDeadline) }
	update("me")
	check("a renewal that took long", true)
	now = now.Add(leaseUse - renewDeadline)
	check("the end of the use, counted from when the renewal was sent", true)
	now = now.Add(time.Millisecond)
	check("later, though not long after the answer", false)
	lock.during = nil
	update("me")
	check("renewed", true)
	update("")
	check("released", false)
}

func TestSettingsThatCannotBeReadLeaveTheEarlier(t *testing.T) {
	s := newSettingsStore("shared", slog.New(slog.DiscardHandler))
	take := func(text string) {
		s.take(&corev1.ConfigMap{Data: map[string]string{endpoint.SettingsKey: text}})
	}
	for _, text := range []string{"", "{", `{"endpoint":"another"}`} {
		take(text)
		if got := s.get(); got != nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	take(`{"endpoint":"shared","generation":4,"aFieldOfALaterVersion":1}`)
	take(`{"endpoint":"another","generation":5}`)
	<-s.known
	if got := s.get(); got == nil || got.Generation != 4 {
		t.Errorf("settings = %+v, want generation 4", got)
	}
}

func TestReportsAreWrittenWhenTheyChangeOrGrowOld(t *testing.T) {
	kube := fake.NewClientset()
	r := newReporter(options{endpoint: "shared", namespace: "system"}, kube.CoreV1(), "me")
	now := time.Unix(1_800_000_000, 0)
	writes := func(report endpoint.Report, want bool) {
		t.Helper()
		kube.ClearActions()
		if err := r.write(t.Context(), report, now); err != nil {
			t.Fatal(err)
		}
		if got := len(kube.Actions()) > 0; got != want {
			t.Errorf("%+v at %s: written = %t, want %t", report, now, got, want)
		}
	}
	writes(endpoint.Report{Generation: 1}, true)
	now = now.Add(time.Second)
	writes(endpoint.Report{Generation: 1}, false)
	writes(endpoint.Report{Generation: 1, KeyRefused: "expired"}, true)
	now = now.Add(reportEvery)
	writes(endpoint.Report{Generation: 1, KeyRefused: "expired"}, true)
	stored, err := kube.CoreV1().ConfigMaps("system").Get(t.Context(), endpoint.ReportName("shared"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got endpoint.Report
	if err := json.Unmarshal([]byte(stored.Data[endpoint.ReportKey]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Identity != "me" || !got.Time.Equal(now) || got.KeyRefused != "expired" {
		t.Errorf("report = %+v", got)
	}
}
