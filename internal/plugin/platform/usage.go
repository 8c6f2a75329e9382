// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

const usageHelp = `kubectl tinker usage shows the use of a TinkerEndpoint by runs, also by deleted runs: the
tokens that the server bills, and their cost by the prices of the time. Days are days of UTC, and the day of
--since counts as a whole.

--by groups by namespace, run, model, user, day and label=KEY, in this order of columns.`

const usageExample = `  kubectl tinker usage --endpoint prod
  kubectl tinker usage --endpoint prod --by namespace,model --since 7d
  kubectl tinker usage --endpoint prod --by label=project -o json`

type usageFlags struct {
	endpoint, by, since, namespace string
	format                         *output.Format
}

// NewUsage returns the command that shows the usage of an endpoint.
func NewUsage(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f usageFlags
	command := &cobra.Command{
		Use: "usage", Short: "Show who used an endpoint of the platform how much", Long: usageHelp, Example: usageExample,
		Args: cli.NoArgs("name the endpoint with --endpoint"),
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command.Context(), env, cluster) },
	}
	f.format = output.Flag(command.Flags())
	command.Flags().StringVar(&f.endpoint, "endpoint", "", "`NAME` of the TinkerEndpoint; without it the only one")
	command.Flags().StringVar(&f.by, "by", "namespace",
		"`FIELDS` to group by, separated by commas: namespace, run, model, user, day, label=KEY")
	command.Flags().StringVar(&f.since, "since", "30d", "`TIME` to look back, such as 7d or 36h")
	command.Flags().StringVar(&f.namespace, "operator-namespace", "",
		"`NAMESPACE` of the operator. Defaults to the namespace in the endpoint's status")
	return command
}

func (f usageFlags) run(ctx context.Context, env cli.IO, cluster *cli.Cluster) error {
	fields, err := parseFields(f.by)
	if err != nil {
		return err
	}
	back, err := parseSince(f.since)
	if err != nil {
		return err
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	name, namespace, err := f.locate(ctx, connection)
	if err != nil {
		return err
	}
	all, err := readUsage(ctx, connection, namespace, name, time.Now().Add(-back), time.Now())
	if err != nil {
		return err
	}
	if len(all) == 0 && *f.format == output.Table {
		fmt.Fprintf(env.Stderr, "TinkerEndpoint %q has no usage since %s\n", name,
			time.Now().Add(-back).UTC().Format(time.DateOnly))
		return nil
	}
	return output.Print(env, *f.format, usageTable(fields, group(all, fields)))
}

// locate returns the name of the endpoint and the namespace of its usage.
func (f usageFlags) locate(ctx context.Context, connection *cli.Connection) (name, namespace string, err error) {
	if f.endpoint != "" && f.namespace != "" {
		return f.endpoint, f.namespace, nil // This also finds the usage of a deleted endpoint.
	}
	all, err := endpoints(ctx, connection)
	if err != nil {
		return "", "", err
	}
	if f.endpoint == "" && len(all) != 1 {
		return "", "", cli.Misused("the cluster has %d TinkerEndpoints: name one with --endpoint", len(all))
	}
	i := slices.IndexFunc(all, func(e v1alpha1.TinkerEndpoint) bool { return f.endpoint == "" || e.Name == f.endpoint })
	if i < 0 {
		return "", "", fmt.Errorf("TinkerEndpoint %q does not exist: list them with kubectl tinker endpoints, or name the "+
			"namespace of a deleted one with --operator-namespace", f.endpoint)
	}
	namespace = cmp.Or(f.namespace, all[i].Status.Namespace)
	if namespace == "" {
		return "", "", fmt.Errorf("no manager serves TinkerEndpoint %q: name the namespace of its usage with "+
			"--operator-namespace", all[i].Name)
	}
	return all[i].Name, namespace, nil
}

// readUsage reads the usage of all days between two times, including the days of both.
func readUsage(ctx context.Context, reader client.Reader, namespace, name string, from, to time.Time) ([]endpoint.Usage,
	error) {
	var all []endpoint.Usage
	for day := from.UTC().Truncate(24 * time.Hour); !day.After(to); day = day.AddDate(0, 0, 1) {
		config := &corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: endpoint.UsageName(name, day)}, config)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the usage of %s: %w", day.Format(time.DateOnly), cli.Explain(err))
		}
		found, err := decodeUsage(config.Data[endpoint.UsageKey])
		if err != nil {
			return nil, fmt.Errorf("reading the usage of %s: %w", day.Format(time.DateOnly), err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// decodeUsage reads the lines of a day.
func decodeUsage(text string) ([]endpoint.Usage, error) {
	var all []endpoint.Usage
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var line endpoint.Usage
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("decoding line %d: %w", len(all)+1, err)
		}
		all = append(all, line)
	}
	return all, lines.Err()
}

// field is a field by which usage is grouped.
type field struct {
	name string
	of   func(endpoint.Usage) string
}

// known are the fields without a parameter.
var known = []field{
	{"namespace", func(u endpoint.Usage) string { return u.Namespace }},
	{"run", func(u endpoint.Usage) string { return u.Run }},
	{"model", func(u endpoint.Usage) string { return u.Model }},
	{"user", func(u endpoint.Usage) string { return u.User }},
	{"day", func(u endpoint.Usage) string { return u.Day.UTC().Format(time.DateOnly) }},
}

// parseFields reads --by.
func parseFields(text string) ([]field, error) {
	var fields []field
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if key, ok := strings.CutPrefix(name, "label="); ok && key != "" {
			fields = append(fields, field{name, func(u endpoint.Usage) string { return u.Labels[key] }})
			continue
		}
		i := slices.IndexFunc(known, func(f field) bool { return f.name == name })
		if i < 0 {
			return nil, cli.Misused("--by has %q: give namespace, run, model, user, day or label=KEY", name)
		}
		fields = append(fields, known[i])
	}
	return fields, nil
}

// parseSince reads --since: a duration of Go, or a number of days with d.
func parseSince(text string) (time.Duration, error) {
	back, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		back = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || back <= 0 || back > endpoint.UsageDays*24*time.Hour {
		return 0, cli.Misused("--since is %q: give a time up to %dd, such as 30d or 36h", text, endpoint.UsageDays)
	}
	return back, nil
}

// Row is the usage of runs with the same fields.
type Row struct {
	// Fields are the values of --by, by name.
	Fields map[string]string `json:"fields"`
	Tokens endpoint.Tokens   `json:"tokens"`
	// USD is the cost of the tokens, and Unpriced the number of tokens without a price.
	USD      float64 `json:"usd"`
	Unpriced int64   `json:"unpriced,omitempty"`
}

// total returns all tokens of a row. Cached tokens are among the prefilled tokens.
func (r Row) total() int64 {
	return r.Tokens.Prefill + r.Tokens.Sample + r.Tokens.Train + r.Tokens.Forward
}

// group adds up usage by fields. The most expensive row comes first.
func group(all []endpoint.Usage, fields []field) []Row {
	index, rows := map[string]int{}, []Row{}
	for _, u := range all {
		var values []string
		for _, f := range fields {
			values = append(values, f.of(u))
		}
		key := strings.Join(values, "\x00")
		i, ok := index[key]
		if !ok {
			i = len(rows)
			index[key] = i
			row := Row{Fields: map[string]string{}}
			for n, f := range fields {
				row.Fields[f.name] = values[n]
			}
			rows = append(rows, row)
		}
		r := &rows[i]
		r.Tokens.Prefill += u.Tokens.Prefill
		r.Tokens.CachedPrefill += u.Tokens.CachedPrefill
		r.Tokens.Sample += u.Tokens.Sample
		r.Tokens.Train += u.Tokens.Train
		r.Tokens.Forward += u.Tokens.Forward
		r.USD += u.USD
		r.Unpriced += u.Unpriced
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.total(), a.total()))
	})
	return rows
}

// usageTable returns the table of rows.
func usageTable(fields []field, rows []Row) output.Result {
	result := output.Result{Value: rows}
	for _, f := range fields {
		result.Header = append(result.Header, strings.ToUpper(f.name))
	}
	result.Header = append(result.Header, "USD", "TOKENS", "PREFILL", "CACHED", "SAMPLED", "TRAINED", "FORWARD",
		"UNPRICED")
	for _, r := range rows {
		var row []string
		for _, f := range fields {
			row = append(row, cmp.Or(output.Safe(r.Fields[f.name]), "-"))
		}
		row = append(row, fmt.Sprintf("%.2f", r.USD))
		for _, n := range []int64{r.total(), r.Tokens.Prefill, r.Tokens.CachedPrefill, r.Tokens.Sample, r.Tokens.Train,
			r.Tokens.Forward, r.Unpriced} {
			row = append(row, output.Count(n))
		}
		result.Rows = append(result.Rows, row)
	}
	return result
}
