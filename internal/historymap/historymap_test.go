// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package historymap

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

var run = &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r", UID: "0123456789"}}

// cluster returns an API server on which the first *calls writing calls succeed, and later ones fail. If *calls is
// negative, none fails.
func cluster(t *testing.T, calls *int) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	call := func(do func() error) error {
		if *calls == 0 {
			return errors.New("the manager has died")
		}
		*calls--
		return do()
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return call(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return call(func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return call(func() error { return c.Delete(ctx, o, opts...) })
		},
	}).Build()
}

// add adds steps as a manager does: it reads, adds and writes.
func add(ctx context.Context, c client.Client, first, last int64) error {
	head, h, err := Read(ctx, c, run)
	if err != nil {
		return err
	}
	before := h.Chunks()
	var records []contract.Record
	for step := first; step <= last; step++ {
		record := contract.Record{Number: step, Step: step, Lineage: "l", Metrics: map[string]float64{}}
		for i := range contract.MaxRecordMetrics {
			record.Metrics[fmt.Sprintf("env/environment-%02d/reward", i)] = 1 / float64(step+int64(i)+2)
		}
		records = append(records, record)
	}
	h.Add("pod", records)
	parts, err := h.Encode()
	if err != nil {
		return err
	}
	return Write(ctx, c, run, head, before, parts)
}

// TestAWriteThatEndsAnywhere ends each write after any number of its calls: a reader gets the whole history from before
// or after the write, and the next write completes it. Only a write that ended early leaves chunks that the head does
// not name.
func TestAWriteThatEndsAnywhere(t *testing.T) {
	calls := -1
	c := cluster(t, &calls)
	last, ended := int64(0), 0
	for last < 700 {
		for after := 0; ; after++ {
			calls = after
			err := add(t.Context(), c, last+1, last+35)
			calls = -1
			_, h, readErr := Read(t.Context(), c, run)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if h.Known != last && h.Known != last+35 {
				t.Fatalf("the history ends with record %d, want %d or %d", h.Known, last, last+35)
			}
			if n := len(h.Rows); n > 0 && h.Stride == 1 && int64(n) != h.Known {
				t.Fatalf("%d rows are read of %d steps", n, h.Known)
			}
			if err == nil {
				break
			}
			ended++
			if h.Known > last {
				break // The head was written: a deletion failed.
			}
		}
		last += 35
	}
	if ended < 20 {
		t.Errorf("%d writes have ended early, want at least 20", ended)
	}
	_, h, err := Read(t.Context(), c, run)
	if err != nil || len(h.Chunks()) < 2 || h.Rows[len(h.Rows)-1].Step != last {
		t.Errorf("the history has %d chunks (%v), want several", len(h.Chunks()), err)
	}
}

// TestChunksBelongToTheRun checks that every ConfigMap of a history is deleted with its run, and that chunks are
// immutable and the head is not.
func TestChunksBelongToTheRun(t *testing.T) {
	calls := -1
	c := cluster(t, &calls)
	for step := int64(1); step < 700; step += 50 {
		if err := add(t.Context(), c, step, step+49); err != nil {
			t.Fatal(err)
		}
	}
	_, h, err := Read(t.Context(), c, run)
	if err != nil {
		t.Fatal(err)
	}
	var maps corev1.ConfigMapList
	if err := c.List(t.Context(), &maps); err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(h.Chunks()); len(maps.Items) != want || want < 3 {
		t.Errorf("there are %d ConfigMaps, want %d: the head and its chunks", len(maps.Items), want)
	}
	for _, object := range maps.Items {
		isHead := object.Name == desired.HistoryName(run)
		if !metav1.IsControlledBy(&object, run) || (object.Immutable != nil) == isHead {
			t.Errorf("ConfigMap %s has owners %v and immutable %v", object.Name, object.OwnerReferences, object.Immutable)
		}
	}
}

// TestReadWhileChunksAreReplaced reads a head whose chunk another manager then replaces: the read begins again.
func TestReadWhileChunksAreReplaced(t *testing.T) {
	calls := -1
	c := cluster(t, &calls)
	for step := int64(1); step <= 200; step += 100 {
		if err := add(t.Context(), c, step, step+99); err != nil {
			t.Fatal(err)
		}
	}
	replaced := false
	reader := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if !replaced && key.Name != desired.HistoryName(run) {
				replaced = true
				for step := int64(201); step <= 600; step += 50 {
					if err := add(ctx, c, step, step+49); err != nil {
						return err
					}
				}
			}
			return c.Get(ctx, key, o, opts...)
		}})
	_, h, err := Read(t.Context(), reader, run)
	if err != nil || !replaced || h.Known != 600 {
		t.Fatalf("Read() returns record %d (%v), want the record of the second head, 600", h.Known, err)
	}
	if first := h.Rows[0].Step; first > h.Stride {
		t.Errorf("the rows begin with step %d, want the rows of all chunks", first)
	}
}

// TestReadRefusesWhatIsNotTheRuns checks that Read refuses the ConfigMap of another owner, and a ConfigMap that is no
// history.
func TestReadRefusesWhatIsNotTheRuns(t *testing.T) {
	calls := -1
	c := cluster(t, &calls)
	object := desired.HistoryMap(run, desired.HistoryName(run), map[string]string{history.DataKey: "x"})
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if head, _, err := Read(t.Context(), c, run); !errors.Is(err, ErrInvalid) || head == nil {
		t.Errorf("Read() = %v, want ErrInvalid and the ConfigMap, to replace it", err)
	}
	object.OwnerReferences = nil
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(t.Context(), c, run); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("Read() = %v, want that the ConfigMap does not belong to the run", err)
	}
}
