// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(-d))
	return &at
}

// TestLastChecked checks which run LastChecked chooses among runs, some of which have checked another endpoint or
// another model.
func TestLastChecked(t *testing.T) {
	run := func(name string, age time.Duration, spec, found, model string,
		changes ...func(*v1alpha1.Capabilities)) v1alpha1.TrainingRun {
		r := v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: *ago(age)}}
		r.Spec.Tinker.BaseURL = spec
		if found != "" {
			r.Status.Capabilities = &v1alpha1.Capabilities{BaseURL: found, Model: model, Connection: "c"}
		}
		for _, change := range changes {
			change(r.Status.Capabilities)
		}
		return r
	}
	checked := func(age time.Duration) func(*v1alpha1.Capabilities) {
		return func(c *v1alpha1.Capabilities) { c.CheckedAt = ago(age) }
	}
	shared := func(age time.Duration) func(*v1alpha1.Capabilities) {
		return func(c *v1alpha1.Capabilities) {
			c.SharedFrom = &v1alpha1.SharedCheck{Name: "first", CheckedAt: *ago(age)}
		}
	}
	supports := func(names ...string) func(*v1alpha1.Capabilities) {
		return func(c *v1alpha1.Capabilities) { c.Supported = names }
	}
	connected := func(c *v1alpha1.Capabilities) { c.Connection = "proxy" }
	const own, other = "http://own", "http://other"
	mixed := []v1alpha1.TrainingRun{
		run("old", 3*time.Hour, own, own, "m"),
		run("new", 2*time.Hour, own, own, "m"),
		run("of the manager's endpoint", time.Hour, "", own, "m"),
		run("without findings", 0, own, "", ""),
		run("of another model", 0, own, own, "n"),
		run("of another endpoint", 0, other, other, "m"),
	}
	for name, tc := range map[string]struct {
		runs                       []v1alpha1.TrainingRun
		baseURL, model, connection string
		want                       string
	}{
		"the newest of the same address":  {mixed, own, "m", "", "of the manager's endpoint"},
		"the address is the manager's":    {mixed, "", "m", "", "of the manager's endpoint"},
		"another model":                   {mixed, own, "n", "", "of another model"},
		"another endpoint":                {mixed, other, "m", "", "of another endpoint"},
		"nobody has checked the endpoint": {mixed, "http://new", "m", "", ""},
		"of two":                          {mixed[:2], own, "m", "", "new"},
		"the connection is the same":      {mixed, own, "m", "c", "of the manager's endpoint"},
		"another connection":              {mixed, own, "m", "proxy", ""},
		"only one has the connection": {[]v1alpha1.TrainingRun{run("a", 0, own, own, "m"),
			run("b", time.Hour, own, own, "m", connected)}, own, "m", "proxy", "b"},
		"a run whose address was changed": {[]v1alpha1.TrainingRun{run("a", 0, own, other, "m")}, own, "m", "", ""},
		"an older run that has checked now": {[]v1alpha1.TrainingRun{run("a", 9*time.Hour, own, own, "m", checked(0)),
			run("b", time.Hour, own, own, "m", checked(time.Hour))}, own, "m", "", "a"},
		"one that relies on an older check": {[]v1alpha1.TrainingRun{run("a", 0, own, own, "m", checked(0),
			shared(9*time.Hour)), run("b", time.Hour, own, own, "m", checked(8*time.Hour))}, own, "m", "", "b"},
		"of two that rely on the same check, that which knows more": {[]v1alpha1.TrainingRun{
			run("first", 0, own, own, "m", checked(time.Hour), supports("seed")), run("more", 0, own, own, "m", checked(0),
				shared(time.Hour), supports("seed", "loss.ppo")),
		}, own, "m", "", "more"},
		"of two that know the same, the first by name": {[]v1alpha1.TrainingRun{run("b", 0, own, own, "m", checked(0)),
			run("a", 0, own, own, "m", checked(0))}, own, "m", "", "a"},
	} {
		got := ""
		if found := LastChecked(tc.runs, tc.baseURL, tc.model, tc.connection); found != nil {
			got = found.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestConnection checks that the digest depends on the inputs of a check alone.
func TestConnection(t *testing.T) {
	run := func(changes ...func(*v1alpha1.TrainingRun)) string {
		r := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{
			Model:  v1alpha1.Model{Name: "m", TrainModules: []v1alpha1.TrainModule{"MLP", "Attention"}},
			Tinker: v1alpha1.Tinker{BaseURL: "http://own", APIKeySecretKeyRef: &ref.SecretKey{Name: "tinker", Key: "k"}},
		}}
		for _, change := range changes {
			change(r)
		}
		return Connection(r)
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		same   bool
	}{
		"nothing":     {func(*v1alpha1.TrainingRun) {}, true},
		"the address": {func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.BaseURL = "" }, true},
		"the order of the modules": {func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Model.TrainModules = []v1alpha1.TrainModule{"Attention", "MLP"}
		}, true},
		"the rank": {func(r *v1alpha1.TrainingRun) { r.Spec.Model.LoraRank = new(int32(4)) }, true},
		"the modules": {func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Model.TrainModules = []v1alpha1.TrainModule{"MLP"}
		}, false},
		"the Secret": {func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.APIKeySecretKeyRef.Name = "other" }, false},
		"its key":    {func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.APIKeySecretKeyRef.Key = "other" }, false},
		"the proxy":  {func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.ProxyURL = "http://proxy:1" }, false},
		"the authorities": {func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "ca"}
		}, false},
		"the client certificate": {func(
			r *v1alpha1.TrainingRun) {
			r.Spec.Tinker.ClientCertificateSecretRef = &ref.Secret{Name: "tls"}
		}, false},
		"a variable of the learner": {func(r *v1alpha1.TrainingRun) {
			r.Spec.Override(v1alpha1.TargetLearner).Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:1"}}
		}, false},
		"variables from a ConfigMap": {func(r *v1alpha1.TrainingRun) {
			r.Spec.Override(v1alpha1.TargetLearner).EnvFrom = []corev1.EnvFromSource{{Prefix: "P"}}
		}, false},
	} {
		if same := run(tc.change) == run(); same != tc.same {
			t.Errorf("%s is changed: the connection is the same: %v, want %v", name, same, tc.same)
		}
	}
}

// TestShare shares features that were found supported within a day.
func TestShare(t *testing.T) {
	from := func(change func(*v1alpha1.Capabilities)) *v1alpha1.TrainingRun {
		r := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: "first", CreationTimestamp: *ago(0)}}
		r.Status.Capabilities = &v1alpha1.Capabilities{
			BaseURL: "http://own", Model: "m", Supported: []string{"gradient_sum", "loss.ppo", "repeats", "seed"},
			Ignored:     []string{"ttl"},
			Unsupported: []string{"protobuf"}, CheckedAt: ago(time.Hour), ClientVersion: "v1", Connection: "c",
		}
		change(r.Status.Capabilities)
		return r
	}
	shared := func(name string, age time.Duration) *contract.Capabilities {
		return &contract.Capabilities{
			BaseURL: "http://own", Model: "m", Supported: []string{"loss.ppo", "seed"}, ClientVersion: "v1", Connection: "c",
			SharedFrom: &contract.SharedCheck{Name: name, CheckedAt: now.Add(-age).Format(time.RFC3339)},
		}
	}
	byAnother := func(age time.Duration) *v1alpha1.SharedCheck {
		return &v1alpha1.SharedCheck{Name: "zeroth", CheckedAt: *ago(age)}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Capabilities)
		want   *contract.Capabilities
	}{
		"supported, but for what each run measures": {func(*v1alpha1.Capabilities) {}, shared("first", time.Hour)},
		"a second before a day is over": {func(c *v1alpha1.Capabilities) {
			c.CheckedAt = ago(SharedFor - time.Second)
		}, shared("first", SharedFor-time.Second)},
		"a day ago":          {func(c *v1alpha1.Capabilities) { c.CheckedAt = ago(SharedFor) }, nil},
		"at an unknown time": {func(c *v1alpha1.Capabilities) { c.CheckedAt = nil }, nil},
		"nothing that is supported": {func(c *v1alpha1.Capabilities) { c.Supported = []string{"gradient_sum"} },
			nil},
		"partly by an older check of another run": {func(c *v1alpha1.Capabilities) {
			c.SharedFrom = byAnother(2 * time.Hour)
		}, shared("first", 2*time.Hour)},
		"partly by a check that is too old": {func(c *v1alpha1.Capabilities) { c.SharedFrom = byAnother(SharedFor) }, nil},
		"all by another run": {func(c *v1alpha1.Capabilities) { c.CheckedAt, c.SharedFrom = nil, byAnother(3*time.Hour) },
			shared("first", 3*time.Hour)},
	} {
		before := from(tc.change)
		if diff := cmp.Diff(tc.want, Share(before, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(from(tc.change), before); diff != "" {
			t.Errorf("%s: the run of the cache was changed:\n%s", name, diff)
		}
	}
	if Share(nil, now) != nil {
		t.Error("without a run something is shared")
	}
}
