// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// ORS is an environment of an Open Reward Standard server. Its URL is the address of the server; for a hosted
// environment, it is the address of the service's sessions, and Environment is the variant in the environment's name.
type ORS struct {
	environment.ORS
	// Server is the image that serves at URL in the same pod; nil if the server runs elsewhere. The manager runs it.
	Server *Server `json:"server,omitempty"`
}

// Server is a server that runs beside every worker, or, if it is shared, once for the run. A probe runs it beside
// itself.
type Server struct {
	environment.ServerImage
	Container
}

// Container has settings of a container in the JSON of Kubernetes. Only the manager reads them.
type Container struct {
	Env       json.RawMessage `json:"env,omitempty"`
	Resources json.RawMessage `json:"resources,omitempty"`
}

// SharedServersVariable is the environment variable with the prefix of SharedServerName. It is set in the workers of
// a run that has shared servers.
const SharedServersVariable = "SHARED_SERVERS"

// SharedServerName returns the name of the Deployment and of the Service of a shared server.
func SharedServerName(prefix string, port int32) string {
	return fmt.Sprintf("%s-server-%d", prefix, port)
}

// URLFor returns the address of the server in a pod with the given prefix of shared servers, which may be empty.
func (o *ORS) URLFor(prefix string) string {
	if o.Server == nil || !o.Server.Shared || prefix == "" {
		return o.URL
	}
	return fmt.Sprintf("http://%s:%d", SharedServerName(prefix, o.Server.Port), o.Server.Port)
}

// Deployment returns the name of the server at the hosting service, OWNER/NAME; empty for other servers.
func (o *ORS) Deployment() string {
	hosted, err := ParseHosted(o.Name)
	if err != nil {
		return ""
	}
	return hosted.Deployment
}
