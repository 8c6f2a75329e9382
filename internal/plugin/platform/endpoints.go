// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package platform has the commands that show TinkerEndpoints and their usage.
package platform

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// wideFormat is a format that has the further value wide: a table with more columns.
type wideFormat struct {
	output.Format
	wide bool
}

// Set implements pflag.Value.
func (f *wideFormat) Set(text string) error {
	if text == "wide" {
		f.wide = true
		return nil
	}
	if err := f.Format.Set(text); err != nil {
		return fmt.Errorf("%q is not a format: choose table, wide, json or plain", text)
	}
	return nil
}

// NewEndpoints returns the command that shows the endpoints of the platform.
func NewEndpoints(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	format := wideFormat{Format: output.Table}
	command := &cobra.Command{
		Use: "endpoints", Short: "Show the endpoints of the platform, and what their budgets have left",
		Long: `kubectl tinker endpoints shows the TinkerEndpoints of the cluster, which runs name in tinker.endpointRef:
whether their brokers serve, how many runs are in progress, and how much of each budget is used in its present period.
-o wide shows the models with which the broker has checked what the server supports, and what it lacks.`,
		Example: "  kubectl tinker endpoints\n  kubectl tinker endpoints -o wide",
		Args:    cli.NoArgs("the command takes none"),
		RunE: func(command *cobra.Command, _ []string) error {
			connection, err := cluster.Connect()
			if err != nil {
				return err
			}
			all, err := endpoints(command.Context(), connection)
			if err != nil {
				return err
			}
			if len(all) == 0 && format.Format == output.Table {
				fmt.Fprintln(env.Stderr, "the cluster has no TinkerEndpoint")
				return nil
			}
			return output.Print(env, format.Format, tableOf(all, format.wide, time.Now()))
		},
	}
	command.Flags().VarP(&format, "output", "o", "`FORMAT` of the output: table, wide, json, or plain, which is a header "+
		"and lines of fields that tabs separate")
	return command
}

// endpoints returns the TinkerEndpoints of the cluster, in the order of their names.
func endpoints(ctx context.Context, connection *cli.Connection) ([]v1alpha1.TinkerEndpoint, error) {
	var list v1alpha1.TinkerEndpointList
	if err := connection.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing TinkerEndpoints: %w", cli.Explain(err))
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.TinkerEndpoint) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// tableOf returns the table of endpoints.
func tableOf(all []v1alpha1.TinkerEndpoint, wide bool, now time.Time) output.Result {
	result := output.Result{Header: []string{"NAME", "ADDRESS", "READY", "RUNS", "BUDGETS"}, Value: all}
	if wide {
		result.Header = append(result.Header, "REASON", "NAMESPACE", "AGE", "CHECKED", "MESSAGE")
	}
	for i := range all {
		of := &all[i]
		ready := ptr.Deref(meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionReady), unknown)
		row := []string{of.Name, output.Safe(of.Spec.BaseURL), string(ready.Status),
			strconv.Itoa(int(ptr.Deref(of.Status.Runs, 0))), budgets(of, now)}
		if wide {
			row = append(row, ready.Reason, of.Status.Namespace, output.Duration(now.Sub(of.CreationTimestamp.Time)),
				checked(of, now), output.Safe(ready.Message))
		}
		result.Rows = append(result.Rows, row)
	}
	return result
}

// unknown is the condition Ready of an endpoint that no manager has observed.
var unknown = metav1.Condition{Status: metav1.ConditionUnknown, Reason: "NotObserved",
	Message: "No manager serves the endpoint: see the chart's values endpoints.enabled and endpoints.names."}

// checked names the models with which the broker has checked the server, the time, and the features that the server
// lacks.
func checked(of *v1alpha1.TinkerEndpoint, now time.Time) string {
	var all []string
	for _, found := range of.Status.Capabilities {
		text := found.Model
		if found.CheckedAt != nil {
			text += fmt.Sprintf(" %s ago", output.Duration(now.Sub(found.CheckedAt.Time)))
		}
		if lacks := slices.Concat(found.Ignored, found.Unsupported); len(lacks) > 0 {
			text += ", lacks " + strings.Join(slices.Sorted(slices.Values(lacks)), " ")
		}
		if found.Refused != "" {
			text += ", refused"
		}
		all = append(all, output.Safe(text))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, "; ")
}

// budgets says how much of each budget of an endpoint is used.
func budgets(of *v1alpha1.TinkerEndpoint, now time.Time) string {
	var all []string
	for _, budget := range of.Spec.Budgets {
		tokens, usd := rules.UsageOf(of, budget, now)
		var parts []string
		if budget.USD != nil {
			parts = append(parts, fmt.Sprintf("%.2f/%.2f USD", usd, *budget.USD))
		}
		if budget.Tokens != nil {
			parts = append(parts, fmt.Sprintf("%s/%s tokens", output.Count(tokens), output.Count(*budget.Tokens)))
		}
		all = append(all, budget.Name+": "+strings.Join(parts, ", "))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, "; ")
}
