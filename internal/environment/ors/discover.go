// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// environmentName returns the environment's name in paths: the configured name, or the name of the server's first
// environment. It is empty if the server has no list, and at the hosted service: both find their first environment
// without a name.
func (b *Backend) environmentName(ctx context.Context) (string, error) {
	if b.options.Environment != "" || b.options.Deployment != "" {
		return b.options.Environment, nil
	}
	b.names.Lock()
	defer b.names.Unlock()
	if b.name != "" {
		return b.name, nil
	}
	var names []string
	err := b.do(ctx, request{method: http.MethodGet, path: "/list_environments"}, &names)
	switch {
	case hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed):
		return "", nil
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", &replyError{fmt.Errorf("the server lists no environments")}
	}
	b.name = names[0]
	return b.name, nil
}

// pathOf returns the path of an environment, such as /math. It is empty if the name is empty.
func pathOf(name string) string {
	if name == "" {
		return ""
	}
	return "/" + url.PathEscape(name)
}

// Splits implements tooluse.Backend.
func (b *Backend) Splits(ctx context.Context) ([]environment.Split, error) {
	ctx, stop := context.WithTimeoutCause(ctx, b.options.CreateTimeout, errCreateTimeout)
	defer stop()
	splits, err := b.splits(ctx)
	if err != nil {
		return nil, faultOf(ctx, "listing the splits", err)
	}
	slices.SortFunc(splits, func(a, c environment.Split) int { return cmp.Compare(a.Name, c.Name) })
	return splits, nil
}

func (b *Backend) splits(ctx context.Context) ([]environment.Split, error) {
	session, end, err := b.discoverySession(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	name, err := b.environmentName(ctx)
	if err != nil {
		return nil, err
	}
	prefix := pathOf(name)
	var entries []splitEntry
	if err := b.do(ctx, request{method: http.MethodGet, path: prefix + "/splits", session: session},
		&entries); err != nil {
		return nil, b.withNames(ctx, session, err)
	}
	splits := make([]environment.Split, 0, len(entries))
	for _, entry := range entries {
		count, err := b.countTasks(ctx, prefix, session, entry.Name)
		if err != nil {
			return nil, fmt.Errorf("counting the tasks of split %q: %w", entry.Name, err)
		}
		splits = append(splits, environment.Split{Name: entry.Name, Tasks: count})
	}
	return splits, nil
}

// withNames adds the names of the server's environments to the error that reports an unknown environment. The hosted
// service finds the server by the session.
func (b *Backend) withNames(ctx context.Context, session string, err error) error {
	if b.options.Environment == "" || !hasStatus(err, http.StatusNotFound) {
		return err
	}
	var names []string
	if b.do(ctx, request{method: http.MethodGet, path: "/list_environments", session: session}, &names) != nil {
		return err
	}
	return fmt.Errorf("%w; %s, and the server has: %s", err, b.options.given(), strings.Join(names, ", "))
}

// given returns the field that names the environment, with its value.
func (o *Options) given() string {
	switch {
	case o.Deployment == "":
		return fmt.Sprintf("ors.environment is %q", o.Environment)
	case o.Environment == "":
		return fmt.Sprintf("ors.name is %q", o.Deployment)
	}
	return fmt.Sprintf("ors.name is %q", o.Deployment+"@"+o.Environment)
}

// countTasks returns the number of tasks of a split. Servers that cannot count list their tasks.
func (b *Backend) countTasks(ctx context.Context, prefix, session, split string) (int64, error) {
	body := map[string]string{"split": split}
	var number struct {
		Tasks int64 `json:"num_tasks"`
	}
	err := b.do(ctx, request{method: http.MethodPost, path: prefix + "/num_tasks", session: session, body: body}, &number)
	if !hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed) {
		return number.Tasks, err
	}
	var list struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	err = b.do(ctx, request{method: http.MethodPost, path: prefix + "/tasks", session: session, body: body}, &list)
	return int64(len(list.Tasks)), err
}

// discoverySession returns the ID of a session for requests outside of episodes, and a function that ends the
// session. Only the hosted service needs one, to find the server.
func (b *Backend) discoverySession(ctx context.Context) (id string, end func(), err error) {
	if b.options.Deployment == "" {
		return "", func() {}, nil
	}
	if id, err = b.createSession(ctx, true); err != nil {
		return "", nil, err
	}
	return id, func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer stop()
		// A session that is not deleted costs the service a place for some minutes.
		_ = b.do(ctx, request{method: http.MethodPost, path: "/delete_session", session: id}, nil)
	}, nil
}
