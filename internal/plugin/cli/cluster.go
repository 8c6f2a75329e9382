// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/nearest"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Cluster is the cluster and the namespace that the command line chooses, as kubectl does.
type Cluster struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

// NewCluster adds kubectl's flags that choose a cluster. Help shows only the usual flags.
func NewCluster(flags *pflag.FlagSet) *Cluster {
	c := &Cluster{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&c.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "",
		"`FILE` that has the clusters; without it, as kubectl chooses it")
	clientcmd.BindOverrideFlags(&c.overrides, own, clientcmd.RecommendedConfigOverrideFlags(""))
	own.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = !slices.Contains([]string{"kubeconfig", "context", "namespace"}, flag.Name)
	})
	flags.AddFlagSet(own)
	return c
}

// Connection is a client of the cluster.
type Connection struct {
	client.Client
	Config    *rest.Config
	Namespace string
	// NamespaceGiven says that the command line names the namespace, rather than the context.
	NamespaceGiven bool
}

// Connect returns a client of the cluster, which sends no request yet.
func (c *Cluster) Connect() (*Connection, error) {
	log.SetLogger(logr.Discard())
	chosen := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	config, err := chosen.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("choosing the cluster: %w; set --kubeconfig, --context or the variable KUBECONFIG", err)
	}
	namespace, given, err := chosen.Namespace()
	if err != nil {
		return nil, fmt.Errorf("choosing the namespace: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = 50, 100, "kubectl-tinker"
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	connected, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, Explain(err)
	}
	return &Connection{Client: connected, Config: config, Namespace: namespace, NamespaceGiven: given}, nil
}

// Explain adds the repair to an error of the API server.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%w: the cluster has no such kind: install the operator's chart, or choose another cluster with "+
			"--context", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: ask for one of the operator's roles, or choose another user with --context", err)
	case apierrors.ReasonForError(err) == "" && !errors.Is(err, context.Canceled):
		return fmt.Errorf("reaching the cluster: %w: check that it runs, or choose another one with --context", err)
	}
	return err
}

// Runs returns the runs of the namespace, in the order of their names.
func (c *Connection) Runs(ctx context.Context) ([]v1alpha1.TrainingRun, error) {
	var list v1alpha1.TrainingRunList
	if err := c.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("listing runs: %w", Explain(err))
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.TrainingRun) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// AllRuns returns the runs of all namespaces, in the order of namespaces and names.
func (c *Connection) AllRuns(ctx context.Context) ([]v1alpha1.TrainingRun, error) {
	var list v1alpha1.TrainingRunList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the runs of all namespaces: %w", Explain(err))
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.TrainingRun) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// Run returns a run of the namespace. If the run does not exist, the error says which run may be meant.
func (c *Connection) Run(ctx context.Context, name string) (*v1alpha1.TrainingRun, error) {
	run := &v1alpha1.TrainingRun{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, run)
	if err == nil {
		return run, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading run %q: %w", name, Explain(err))
	}
	if runs, listErr := c.Runs(ctx); listErr != nil {
		return nil, listErr
	} else if hint := c.hint(ctx, name, runs); hint != "" {
		return nil, fmt.Errorf("TrainingRun %q does not exist in namespace %q: %s", name, c.Namespace, hint)
	}
	return nil, fmt.Errorf("TrainingRun %q does not exist in namespace %q: list runs with: kubectl get trainingruns -A",
		name, c.Namespace)
}

// NearEnvironments suggests the RewardEnvironments of a namespace that may be meant by names that none of them has;
// "" if no name is near, or if they cannot be listed.
func (c *Connection) NearEnvironments(ctx context.Context, namespace string, names []string) string {
	var list v1alpha1.RewardEnvironmentList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return ""
	}
	var known, near []string
	for _, environment := range list.Items {
		known = append(known, environment.Name)
	}
	for _, name := range names {
		if found := nearest.Name(name, known); found != "" && !slices.Contains(known, name) {
			near = append(near, found)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " and ") + "?"
}

// hint says which run may be meant by a name that no run of the namespace has.
func (c *Connection) hint(ctx context.Context, name string, runs []v1alpha1.TrainingRun) string {
	var all v1alpha1.TrainingRunList
	var elsewhere []string
	if err := c.List(ctx, &all); err == nil {
		for _, run := range all.Items {
			if run.Name == name {
				elsewhere = append(elsewhere, run.Namespace)
			}
		}
	}
	slices.Sort(elsewhere)
	var names []string
	for _, run := range runs {
		names = append(names, run.Name)
	}
	switch near := nearest.Name(name, names); {
	case len(elsewhere) == 1:
		return fmt.Sprintf("namespace %s has a run of that name: add --namespace %s", elsewhere[0], elsewhere[0])
	case len(elsewhere) > 1:
		return fmt.Sprintf("the namespaces %s have runs of that name: add --namespace %s, for instance",
			strings.Join(elsewhere, ", "), elsewhere[0])
	case near != "":
		return fmt.Sprintf("did you mean %s?", near)
	case len(names) > 0:
		const most = 8
		if len(names) > most {
			names = append(names[:most:most], fmt.Sprintf("and %d others", len(names)-most))
		}
		return "its runs are " + strings.Join(names, ", ")
	}
	return "it has no runs: choose another with --namespace"
}

// ForOneRun returns the command, which takes the name of a run as its only argument and calls act with the run.
// Checks of flags that need no cluster belong to PreRunE.
func (c *Cluster) ForOneRun(command *cobra.Command,
	act func(context.Context, *Connection, *v1alpha1.TrainingRun) error) *cobra.Command {
	command.Args, command.ValidArgsFunction = Args(1, 1, "the name of a RUN"), c.CompleteRuns(1)
	command.RunE = func(command *cobra.Command, args []string) error {
		connection, err := c.Connect()
		if err != nil {
			return err
		}
		run, err := connection.Run(command.Context(), args[0])
		if err != nil {
			return err
		}
		return act(command.Context(), connection, run)
	}
	return command
}

// CompleteRuns completes the names of runs that were not given yet.
func (c *Cluster) CompleteRuns(most int) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), 3*time.Second)
		defer cancel()
		connection, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		runs, err := connection.Runs(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, run := range runs {
			if !slices.Contains(args, run.Name) {
				names = append(names, cobra.CompletionWithDesc(run.Name,
					strings.TrimSpace(run.Status.State+" "+status.Steps(&run.Status))))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// InputName returns the name of an input for messages.
func InputName(name string) string {
	if name == "-" {
		return "the standard input"
	}
	return name
}

// ReadInput reads a file, or the standard input for "-".
func (e IO) ReadInput(name string, readFile func(string) ([]byte, error)) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.Stdin)
	}
	return readFile(name)
}
