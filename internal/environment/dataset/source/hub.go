// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/hub"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

// loadHub reads splits of a repository of the hub.
func (l *Loader) loadHub(ctx context.Context,
	definition contract.Dataset) (*dataset.Table, *contract.DataContents, error) {
	done, err := l.permit(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	repository, err := l.repository(*definition.Hub)
	if err != nil {
		return nil, nil, err
	}
	revision := cmp.Or(definition.Hub.Revision, "main")
	if definition.Contents != nil {
		revision = definition.Contents.Revision
	}
	commit, err := repository.Read(ctx, revision)
	if err != nil {
		return nil, nil, hubError(*definition.Hub, revision, err)
	}
	if definition.Contents != nil && commit.SHA != definition.Contents.Revision {
		return nil, nil, errorf("dataset.hub.revision: the hub has commit %s in place of %s, which was pinned",
			commit.SHA, revision)
	}
	splits, err := commit.Splits(definition.Hub.Config)
	if err != nil {
		return nil, nil, errorf("dataset.hub.%w", err)
	}
	names, err := sourceNames(definition, splits)
	if err != nil {
		return nil, nil, err
	}
	b := l.build(definition)
	for _, name := range names {
		err := b.read(name, func(s *source) (string, error) {
			return s.addSplit(ctx, l, repository, commit.SHA, splits[name])
		})
		if err == nil {
			err = checkPinned(definition, b.sources[len(b.sources)-1])
		}
		if err != nil {
			return nil, nil, b.discard(hubError(*definition.Hub, revision, err))
		}
	}
	return b.table(commit.SHA)
}

// repository returns the repository of a definition, with its token.
func (l *Loader) repository(h settings.Hub) (hub.Repository, error) {
	r := hub.Repository{Client: l.config.Client, URL: h.BaseURL, Name: h.Repository}
	if h.TokenSecretKeyRef == nil {
		return r, nil
	}
	token, err := os.ReadFile(filepath.Join(l.config.Root, contract.SecretMount(*h.TokenSecretKeyRef),
		h.TokenSecretKeyRef.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return r, errorf("dataset.hub.tokenSecretKeyRef: Secret %q does not exist in this namespace, or has no key "+
			"%q: create it, or correct the name",
			h.TokenSecretKeyRef.Name, h.TokenSecretKeyRef.Key)
	}
	r.Token = strings.TrimSpace(string(token))
	return r, err
}

// sourceNames returns the sorted names of the splits of the hub that a definition needs: the splits that it names, or
// all splits.
func sourceNames(definition contract.Dataset, splits map[string][]hub.File) ([]string, error) {
	known := slices.Sorted(maps.Keys(splits))
	if len(definition.Splits) == 0 {
		return known, nil
	}
	var names []string
	for i, split := range definition.Splits {
		if split.From != "" {
			continue
		}
		if splits[split.Source] == nil {
			return nil, &Error{Err: &dataset.CutError{Index: i, Name: split.Name,
				Problem: fmt.Sprintf("the data has no split %q; it has %s", split.Source, strings.Join(known, ", ")),
				Repair:  "correct source"}}
		}
		names = append(names, split.Source)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// addSplit adds the rows of all files of a split. Its digest is the digest of the list of files with their digests.
func (s *source) addSplit(ctx context.Context, l *Loader, repository hub.Repository, commit string,
	files []hub.File) (string, error) {
	list := sha256.New()
	for _, f := range files {
		body, err := repository.Open(ctx, commit, f.Path)
		if err != nil {
			return "", err
		}
		digest, err := s.add(f.Path, l.logged(ctx, f.Path, f.Size, body))
		err = errors.Join(err, body.Close())
		if err == nil && f.SHA256 != "" && f.SHA256 != digest {
			err = fmt.Errorf("downloading %s: it has sha256 %s, and %s in the hub's listing", f.Path, digest, f.SHA256)
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(list, "%s %s\n", digest, f.Path)
	}
	return digestOf(list), nil
}

// checkPinned compares a split of the hub with the pinned one. A commit does not change, so that a difference is a
// defect of the hub or of the connection to it.
func checkPinned(definition contract.Dataset, read contract.DataSource) error {
	if want := definition.SHA256(read.Name); want != "" && want != read.SHA256 {
		return errorf("dataset.hub.repository: split %s has sha256 %s, but had %s at the same commit when the "+
			"environment was probed: "+
			"have the hub repaired, or have the environment probed again and start a new run", read.Name, read.SHA256, want)
	}
	return nil
}

// hubError adds the repair to the error of a refusal.
func hubError(h settings.Hub, revision string, err error) error {
	var status *httpstatus.Error
	if !errors.As(err, &status) {
		return err
	}
	switch {
	case status.Status == http.StatusUnauthorized && h.TokenSecretKeyRef == nil:
		return errorf("dataset.hub.repository: the hub answers 401 for %s: it does not exist, or it is private "+
			"or gated; "+
			"correct the name, or give tokenSecretKeyRef", h.Repository)
	case status.Status == http.StatusUnauthorized:
		return errorf("dataset.hub.tokenSecretKeyRef: the hub answers 401 for %s: the token is not valid; "+
			"put a valid "+
			"one into Secret %q", h.Repository, h.TokenSecretKeyRef.Name)
	case status.Status == http.StatusForbidden && h.TokenSecretKeyRef == nil:
		return errorf("dataset.hub.tokenSecretKeyRef: the hub answers 403 for %s: it is gated; give the token of "+
			"somebody who has access", h.Repository)
	case status.Status == http.StatusForbidden:
		return errorf("dataset.hub.tokenSecretKeyRef: the hub answers 403 for %s: the token's owner has no access; "+
			"accept the repository's conditions at the hub, or use another token", h.Repository)
	case status.Status == http.StatusNotFound:
		return errorf("dataset.hub.repository: the hub answers 404 for %s at revision %s: correct repository "+
			"or revision", h.Repository, revision)
	default:
		return err
	}
}
