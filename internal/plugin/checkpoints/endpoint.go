// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/relay"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	tinkerclient "github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// The environment variables, which the official SDK also reads.
const (
	keyVariable     = "TINKER_API_KEY"
	baseURLVariable = "TINKER_BASE_URL"
)

// archivePatience is the time that an endpoint has to pack an archive, or to answer at all.
const archivePatience = 4 * time.Minute

// maxUnreachable limits how often a connection is tried.
const maxUnreachable = 4

// Endpoint is a server of the Tinker API and how this machine calls it.
type Endpoint struct {
	baseURL, key string
	http         *http.Client
	// relay sends the requests through a pod, and name is the TinkerEndpoint; nil and empty for a direct connection.
	relay *relay.Relay
	name  string
}

// Open returns the endpoint of a run. For a run that names a TinkerEndpoint it starts a pod that has the token of the
// run, unless baseURL or the environment names a server. The caller closes the endpoint.
func Open(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun,
	baseURL string) (Endpoint, error) {
	named := run.Spec.Tinker.EndpointRef
	if named == nil || cmp.Or(baseURL, env.Getenv(baseURLVariable)) != "" {
		return EndpointOf(ctx, env, connection, run, baseURL)
	}
	pods, err := runpod.New(env, connection)
	if err != nil {
		return Endpoint{}, err
	}
	direct, err := transport.New(transport.FromEnvironment(env.Getenv))
	if err != nil {
		return Endpoint{}, err
	}
	e := throughPod(pods, run, direct)
	return e, e.relay.Start(ctx)
}

// throughPod returns the endpoint of a run, with requests that a pod passes on. Files that the endpoint names are
// fetched directly if possible.
func throughPod(pods runpod.Pods, run *v1alpha1.TrainingRun, direct http.RoundTripper) Endpoint {
	by := relay.New(pods, run, direct)
	return Endpoint{baseURL: relay.BaseURL, key: relay.Token, http: &http.Client{Transport: by}, relay: by,
		name: run.Spec.Tinker.EndpointRef.Name}
}

// Close deletes the pod through which requests were sent, if there is one, even if the context has ended.
func (e Endpoint) Close(ctx context.Context) error {
	if e.relay == nil {
		return nil
	}
	return e.relay.Close(ctx)
}

// place returns the endpoint's name for messages.
func (e Endpoint) place() string {
	if e.relay == nil {
		return e.baseURL
	}
	return "TinkerEndpoint " + e.name
}

// EndpointOf returns the endpoint of a run, with requests that this machine sends itself.
func EndpointOf(ctx context.Context, env cli.IO, kube client.Reader, run *v1alpha1.TrainingRun,
	baseURL string) (Endpoint, error) {
	own := cmp.Or(baseURL, env.Getenv(baseURLVariable))
	e := Endpoint{baseURL: cmp.Or(own, run.Spec.Tinker.BaseURL)}
	if e.baseURL == "" {
		return e, fmt.Errorf("run %q uses the operator's default endpoint, which this command does not know: name it with "+
			"--base-url or the variable %s",
			run.Name, baseURLVariable)
	}
	if !strings.HasPrefix(e.baseURL, "http://") && !strings.HasPrefix(e.baseURL, "https://") {
		return e, cli.Misused("the base URL %q is invalid: it begins with http:// or https://, followed by a host", e.baseURL)
	}
	options := transport.FromEnvironment(env.Getenv)
	options.ProxyURL = cmp.Or(options.ProxyURL, run.Spec.Tinker.ProxyURL)
	connect, err := transport.New(options)
	if err != nil {
		return e, err
	}
	e.http = &http.Client{Transport: connect}
	// The author of the run chose its baseURL: it gets the key of the run, and not the person's key.
	key := strings.TrimSpace(env.Getenv(keyVariable))
	trusted := own != "" || strings.HasPrefix(e.baseURL, "https://") && tinkerclient.IsHosted(e.baseURL)
	if key != "" && trusted {
		e.key = key
		return e, nil
	}
	if e.key, err = secretKey(ctx, kube, run); err == nil {
		return e, nil
	}
	if key != "" {
		return e, fmt.Errorf("%w: to send the key of %s to the run's endpoint, give --base-url %s", err, keyVariable,
			e.baseURL)
	}
	return e, fmt.Errorf("%w: set the variable %s instead", err, keyVariable)
}

// secretKey reads the API key from the run's Secret.
func secretKey(ctx context.Context, kube client.Reader, run *v1alpha1.TrainingRun) (string, error) {
	ref := run.Spec.Tinker.APIKeySecretKeyRef
	if ref == nil {
		return "", fmt.Errorf("run %q has no API key of its own", run.Name)
	}
	var secret corev1.Secret
	if err := kube.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: ref.Name}, &secret); err != nil {
		return "", fmt.Errorf("reading the API key of run %q from its Secret: %w", run.Name, err)
	}
	key := strings.TrimSpace(string(secret.Data[ref.Key]))
	if key == "" {
		return "", fmt.Errorf("reading the API key of run %q: its Secret %q has no key %q with an API key", run.Name,
			ref.Name, ref.Key)
	}
	return key, nil
}

// Client returns a client of the endpoint, which reports each retry. The first report that the endpoint is
// unreachable has the repair. The client calls giveUp if the endpoint remains unreachable.
func (e Endpoint) Client(report func(string), giveUp func()) (*tinkerclient.Client, error) {
	unreachable := 0
	return tinkerclient.New(tinkerclient.Config{
		BaseURL: e.baseURL, APIKey: e.key, UserAgent: "kubectl-tinker/" + version.String(), HTTP: e.http,
		Observe: func(event tinkerclient.Event) {
			if event.Over {
				return
			}
			message := fmt.Sprintf("the endpoint %s does not answer yet (%s %s); trying again", e.place(), event.Category,
				event.Reason)
			if event.Category == tinker.CategoryUnreachable {
				if unreachable++; unreachable == 1 && e.relay == nil {
					message += ": " + howToReach(e.baseURL)
				}
			}
			report(message)
			if unreachable == maxUnreachable {
				giveUp()
			}
		},
	})
}

// locate returns the URL of the archive of a checkpoint.
func (e Endpoint) locate(ctx context.Context, api *tinkerclient.Client, path string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	location, err := api.ArchiveURL(limited, path)
	if err != nil {
		return "", e.explain(err)
	}
	base, err := url.Parse(e.baseURL)
	if err != nil {
		return "", fmt.Errorf("parsing the base URL: %w", err)
	}
	absolute, err := base.Parse(location)
	if err != nil || location == "" {
		return "", fmt.Errorf("the endpoint names no valid URL of the archive: check that %s is a server of the Tinker API",
			e.place())
	}
	return absolute.String(), nil
}

// AddSamplers adds to checkpoints the sampler weights that the endpoint has under the names of their states. The status
// of a run names only the sampler weights of the newest and the best checkpoint.
func (e Endpoint) AddSamplers(ctx context.Context, env cli.IO, checkpoints []v1alpha1.Checkpoint) error {
	limited, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	api, err := e.Client(func(message string) { fmt.Fprintln(env.Stderr, message) }, cancel)
	if err != nil {
		return err
	}
	for i, c := range checkpoints {
		path, err := tinker.ParsePath(c.State)
		if c.Sampler != "" || err != nil {
			continue
		}
		path.Kind = tinker.KindSampler
		all, err := api.RunCheckpoints(limited, path.Run)
		if tinkerclient.CategoryFrom(err) == tinker.CategoryNotFound {
			continue // The endpoint lists no checkpoints, or has none of the model.
		}
		if err != nil {
			return e.explain(err)
		}
		if slices.ContainsFunc(all, func(listed tinker.Checkpoint) bool { return listed.TinkerPath == path.String() }) {
			checkpoints[i].Sampler = path.String()
		}
	}
	return nil
}

// explain adds the repair to an error of the endpoint.
func (e Endpoint) explain(err error) error {
	category := tinkerclient.CategoryFrom(err)
	if e.relay != nil && category != tinker.CategoryNotFound {
		return err // The broker names the repair.
	}
	switch category {
	case "":
		return err
	case tinker.CategoryUnauthorized:
		return fmt.Errorf("%w: set %s to the key of the account that trained the run", err, keyVariable)
	case tinker.CategoryNotFound:
		return fmt.Errorf("%w: the checkpoint was deleted or has expired, or the endpoint serves no archives: list others "+
			"with: kubectl tinker checkpoints list", err)
	case tinker.CategoryCanceled, tinker.CategoryNotTinker, tinker.CategoryUnreachable:
		return fmt.Errorf("%w: %s", err, howToReach(e.baseURL))
	}
	return err
}

// howToReach returns the repair if this machine does not reach an endpoint.
func howToReach(baseURL string) string {
	return fmt.Sprintf("check that this machine reaches %s; for an endpoint within the cluster, forward a port with "+
		"kubectl port-forward and name it with --base-url", baseURL)
}
