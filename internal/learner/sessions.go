// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sessionOf returns the values that every session of a run has. The bill of hosted Tinker lists usage by the project
// and by the metadata of sessions, so that it can be split by run.
func sessionOf(file contract.RunFile) client.SessionRequest {
	request := client.SessionRequest{
		ProjectID: file.ProjectID,
		UserMetadata: map[string]string{
			"namespace": file.Run.Namespace, "run": file.Run.Name, "uid": file.Run.UID,
			"attempt": strconv.Itoa(int(file.Attempt)),
		},
	}
	if client.IsHosted(file.Fixed.BaseURL) { // Servers of earlier SDKs may refuse a field that they do not know.
		request.DisplayName = file.Run.Namespace + "/" + file.Run.Name
	}
	return request
}

// describedBy returns the metadata of a run's checkpoints, by which people find them at the console; nil at servers
// that may refuse it: saves have metadata since SDK 0.38.
func describedBy(file contract.RunFile) tinker.Metadata {
	if !client.IsHosted(file.Fixed.BaseURL) {
		return nil
	}
	return tinker.Metadata{"namespace": file.Run.Namespace, "run": file.Run.Name, "uid": file.Run.UID}
}

// finishSessions tells the endpoint that the sessions of a run that has completed are over. They get no more requests;
// a session that cannot be finished expires.
func (l *learner) finishSessions(ctx context.Context) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for _, session := range []string{l.rollouts.Current(), l.models.Current()} {
		if session == "" {
			continue
		}
		if err := l.client.FinishSession(ctx, session); err != nil {
			l.config.Logger.Info("session is left to expire", "session", session, "err", err)
		}
	}
}
