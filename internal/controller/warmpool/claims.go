// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Claims returns the claims of a run by their names, as objects, and whether the cluster serves claims.
func (l *Link) Claims(ctx context.Context, run *v1alpha1.TrainingRun) (map[string]*unstructured.Unstructured, bool,
	error) {
	reader, err := l.Reader(ctx)
	if err != nil || reader == nil {
		return nil, false, err
	}
	found, err := list(ctx, reader, run)
	return found, true, err
}

func list(ctx context.Context, reader client.Reader,
	run *v1alpha1.TrainingRun) (map[string]*unstructured.Unstructured, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(desired.PoolsVersion.WithKind(desired.ClaimKind + "List"))
	if err := reader.List(ctx, &found, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.ProgramLabels(run))); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	claims := map[string]*unstructured.Unstructured{}
	for i := range found.Items {
		if metav1.IsControlledBy(&found.Items[i], run) {
			claims[found.Items[i].GetName()] = &found.Items[i]
		}
	}
	return claims, nil
}

func claimsOf(ctx context.Context, reader client.Reader, run *v1alpha1.TrainingRun) ([]Claim, error) {
	found, err := list(ctx, reader, run)
	if err != nil {
		return nil, err
	}
	claims := make([]Claim, 0, len(found))
	for _, object := range found {
		var claim Claim
		if err := parse(object, &claim); err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// lacking returns the problem of a program without a ready claim, with the words of one of its claims; nil if a claim
// is ready.
func lacking(claims []Claim, program desired.PoolProgram) *problem.Problem {
	evidence := fmt.Sprintf("SandboxWarmPool %q: there is no claim yet", program.Pool)
	for _, claim := range claims {
		if claim.Labels[v1alpha1.LabelProgram] != program.ID || claim.DeletionTimestamp != nil {
			continue
		}
		ready := meta.FindStatusCondition(claim.Status.Conditions, conditionReady)
		switch {
		case ready == nil:
			evidence = fmt.Sprintf("SandboxClaim %q: the controller of agent-sandbox has not answered it", claim.Name)
		case ready.Status == metav1.ConditionTrue:
			return nil
		default:
			evidence = fmt.Sprintf("SandboxClaim %q: %s: %s", claim.Name, ready.Reason, ready.Message)
		}
	}
	return &problem.Problem{Code: problem.ClaimsNotReady, Evidence: evidence}
}

// Lacking returns the problem of a run with a program that lacks a ready sandbox; nil if each of its programs has one.
// list is the output of desired.Pins.Servers for the run's workers.
func (l *Link) Lacking(ctx context.Context, run *v1alpha1.TrainingRun, list string) (*problem.Problem, error) {
	if l == nil {
		return nil, nil
	}
	wanted, err := desired.PoolPrograms(list)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	reader, err := l.Reader(ctx)
	if err != nil {
		return nil, err
	}
	if reader == nil {
		return &problem.Problem{Code: problem.WarmPoolsMissing, Evidence: poolKind + " " +
			strconv.Quote(wanted[0].Pool)}, nil
	}
	claims, err := claimsOf(ctx, reader, run)
	if err != nil {
		return nil, err
	}
	for _, program := range wanted {
		if p := lacking(claims, program); p != nil {
			return p, nil
		}
	}
	return nil, nil
}
