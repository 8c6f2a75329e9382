// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package historymap keeps the history of a run in ConfigMaps: one with the head, which each write replaces, and one
// for each chunk, which is never changed. The head names its chunks, so that a write counts once the head is written.
package historymap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

// ErrInvalid says that the ConfigMaps have no history that can be decoded.
var ErrInvalid = errors.New("invalid history")

// tries is the maximum number of reads of a history whose chunks are replaced meanwhile.
const tries = 3

// Read returns the ConfigMap of the head, nil if it does not exist, and the history. With ErrInvalid it returns the
// head alone. The history lacks the rows of chunks that were deleted.
func Read(ctx context.Context, c client.Reader,
	run *v1alpha1.TrainingRun) (*corev1.ConfigMap, *history.History, error) {
	var version string
	for try := 1; ; try++ {
		head, err := get(ctx, c, run, desired.HistoryName(run))
		if head == nil || err != nil {
			return nil, &history.History{}, err
		}
		parts := history.Parts{Head: []byte(head.Data[history.DataKey]), Chunks: map[string][]byte{}}
		names, err := history.ChunksOf(parts.Head)
		if err != nil {
			return head, nil, fmt.Errorf("%w: ConfigMap %q: %w", ErrInvalid, head.Name, err)
		}
		if err := getChunks(ctx, c, run, names, parts.Chunks); err != nil {
			return nil, nil, err
		}
		// A writer deletes a chunk only after it has written a head that no longer names it.
		if len(parts.Chunks) < len(names) && try < tries && head.ResourceVersion != version {
			version = head.ResourceVersion
			continue
		}
		h, err := history.Decode(parts)
		if err != nil {
			return head, nil, fmt.Errorf("%w: ConfigMap %q: %w", ErrInvalid, head.Name, err)
		}
		return head, h, nil
	}
}

// get returns a ConfigMap of the run, or nil if it does not exist.
func get(ctx context.Context, c client.Reader, run *v1alpha1.TrainingRun, name string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the history of run %q: %w", run.Name, err)
	case !metav1.IsControlledBy(object, run):
		return nil, fmt.Errorf("ConfigMap %q does not belong to the run: delete it", name)
	}
	return object, nil
}

func getChunks(ctx context.Context, c client.Reader, run *v1alpha1.TrainingRun, names []string,
	chunks map[string][]byte) error {
	for _, name := range names {
		object, err := get(ctx, c, run, desired.HistoryChunkName(run, name))
		if err != nil {
			return err
		}
		if object != nil {
			chunks[name] = []byte(object.Data[history.DataKey])
		}
	}
	return nil
}

// Write stores a history: first the new chunks, then the head. It then deletes the chunks that the history no longer
// has. head is the ConfigMap that Read returned, and before are the names of the chunks that the stored history has. If
// Write ends before the head is written, the stored history is unchanged. The objects that are left over belong to the
// run, and are deleted with it.
func Write(ctx context.Context, c client.Client, run *v1alpha1.TrainingRun, head *corev1.ConfigMap, before []string,
	parts history.Parts) error {
	for name, data := range parts.Chunks {
		if slices.Contains(before, name) {
			continue
		}
		chunk := desired.HistoryMap(run, desired.HistoryChunkName(run, name), content(data))
		chunk.Immutable = new(true)
		if err := c.Create(ctx, chunk); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("writing a chunk of the history: %w", err)
		}
	}
	if err := writeHead(ctx, c, run, head, parts.Head); err != nil {
		return fmt.Errorf("writing history: %w", err)
	}
	for _, name := range before {
		if _, kept := parts.Chunks[name]; kept {
			continue
		}
		chunk := desired.HistoryMap(run, desired.HistoryChunkName(run, name), nil)
		if err := c.Delete(ctx, chunk); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting a chunk of the history: %w", err)
		}
	}
	return nil
}

func writeHead(ctx context.Context, c client.Client, run *v1alpha1.TrainingRun, head *corev1.ConfigMap,
	data []byte) error {
	if head == nil {
		return c.Create(ctx, desired.HistoryMap(run, desired.HistoryName(run), content(data)))
	}
	head.Data = content(data)
	return c.Update(ctx, head)
}

func content(data []byte) map[string]string { return map[string]string{history.DataKey: string(data)} }
