// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// maxLookups limits how many models are looked up at the server at once, for one listing.
const maxLookups = 8

// listSessions answers with the sessions of the run, the newest first.
func (b *Broker) listSessions(w http.ResponseWriter, r *http.Request, run Run) error {
	cursor, err := cursorOf(r, 20)
	if err != nil {
		return err
	}
	return answer(w, tinker.SessionList{Sessions: pageOf(b.owners.madeBy(session, run.owns), &cursor)})
}

// listModels answers with the models of the run, the newest first. The server is asked about each of them: its own
// listing is of the whole account.
func (b *Broker) listModels(w http.ResponseWriter, r *http.Request, run Run) error {
	cursor, err := cursorOf(r, 20)
	if err != nil {
		return err
	}
	found, err := lookUp(r.Context(), b.owners.madeBy(model, run.owns), b.inForce.Load().client.TrainingRun)
	if err != nil {
		return listingFailed(err)
	}
	return answer(w, tinker.TrainingRunList{TrainingRuns: pageOf(found, &cursor), Cursor: cursor})
}

// listCheckpoints answers with the checkpoints of the run's models, the newest first.
func (b *Broker) listCheckpoints(w http.ResponseWriter, r *http.Request, run Run) error {
	cursor, err := cursorOf(r, 100)
	if err != nil {
		return err
	}
	found, err := lookUp(r.Context(), b.owners.madeBy(model, run.owns), b.inForce.Load().client.RunCheckpoints)
	if err != nil {
		return listingFailed(err)
	}
	all := slices.Concat(found...)
	slices.SortStableFunc(all, func(x, y tinker.Checkpoint) int {
		if order := y.Time.Compare(x.Time); order != 0 {
			return order
		}
		return strings.Compare(x.TinkerPath, y.TinkerPath)
	})
	page := pageOf(all, &cursor)
	return answer(w, tinker.CheckpointList{Checkpoints: page, Cursor: &cursor})
}

// lookUp asks the server about some models, and leaves out those that the server does not know any more.
func lookUp[T any](ctx context.Context, ids []string, ask func(context.Context, string) (T, error)) ([]T, error) {
	found := make([]*T, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLookups)
	for i, id := range ids {
		group.Go(func() error {
			value, err := ask(ctx, id)
			switch client.CategoryFrom(err) {
			case "":
				found[i] = &value
			case tinker.CategoryNotFound, tinker.CategoryFutureLost:
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	values := make([]T, 0, len(ids))
	for _, value := range found {
		if value != nil {
			values = append(values, *value)
		}
	}
	return values, nil
}

// listingFailed answers for a listing whose lookups failed at the server. The broker's client has already repeated
// the lookups that may be repeated.
func listingFailed(err error) error {
	if failed, ok := errors.AsType[*client.Error](err); ok && failed.Category == tinker.CategoryUnsupported {
		return refuse(http.StatusNotImplemented, problem.EndpointFailing, "%s", failed)
	}
	return refuse(http.StatusBadGateway, problem.EndpointFailing, "listing at the Tinker endpoint: %s", err)
}

// cursorOf reads where a page begins and how long it is; limit is the default length.
func cursorOf(r *http.Request, limit int) (tinker.Cursor, error) {
	cursor := tinker.Cursor{Limit: limit}
	for name, value := range map[string]*int{"limit": &cursor.Limit, "offset": &cursor.Offset} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return cursor, invalid(errors.New(name + " is not an integer of at least 0"))
		}
		*value = n
	}
	return cursor, nil
}

// pageOf returns the page of a list, and sets the total of its cursor.
func pageOf[T any](list []T, cursor *tinker.Cursor) []T {
	cursor.TotalCount = len(list)
	start := min(cursor.Offset, len(list))
	return list[start : start+min(cursor.Limit, len(list)-start)]
}

func answer(w http.ResponseWriter, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	sendJSON(w, http.StatusOK, encoded)
	return nil
}
