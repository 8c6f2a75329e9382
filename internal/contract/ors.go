// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
)

// ORS is an environment of an Open Reward Standard server.
type ORS struct {
	// URL is the address of the server; at the hosted service, that of its sessions.
	URL string `json:"url"`
	// Deployment is the hosted service's name of the server, OWNER/NAME; empty for other servers.
	Deployment string `json:"deployment,omitempty"`
	// Environment is the name of an environment of the server; empty for its first.
	Environment string `json:"environment,omitempty"`
	Toolset     string `json:"toolset,omitempty"`
	// AnswerTool is called with the reply that calls no tool; nil for none but the server's own.
	AnswerTool *AnswerTool `json:"answerTool,omitempty"`
	// APIKey is the Secret key with the key of requests; nil for none.
	APIKey         *SecretKey      `json:"apiKey,omitempty"`
	Secrets        []SessionSecret `json:"secrets,omitempty"`
	SecretDelivery SecretDelivery  `json:"secretDelivery,omitempty"`
	CreateSeconds  int             `json:"createSeconds"`
	CallSeconds    int             `json:"callSeconds"`
	// MaxSessions bounds the open sessions of a worker; 0 means no bound.
	MaxSessions int `json:"maxSessions,omitempty"`
	// Server is the image that serves at URL in the same pod; nil where the server runs elsewhere. The manager runs it.
	Server *ORSServer `json:"server,omitempty"`
}

// AnswerTool is a tool whose one argument is an answer.
type AnswerTool struct {
	Name     string `json:"name"`
	Argument string `json:"argument,omitempty"`
}

// SessionSecret is a secret that the environment's sessions get.
type SessionSecret struct {
	Name         string    `json:"name"`
	Secret       SecretKey `json:"secret"`
	AllowedHosts []string  `json:"allowedHosts,omitempty"`
}

// ORSServer is a server that runs beside every worker.
type ORSServer struct {
	Image string `json:"image"`
	Port  int32  `json:"port"`
	// Shared servers run once for the run. Probes run them beside themselves.
	Shared  bool     `json:"shared,omitempty"`
	Command []string `json:"command,omitempty"`
	// Env and Resources are those of a Kubernetes container.
	Env       json.RawMessage `json:"env,omitempty"`
	Resources json.RawMessage `json:"resources,omitempty"`
}

// SharedServersVariable is the environment variable with the prefix of SharedServerName, which workers have whose run
// has shared servers.
const SharedServersVariable = "SHARED_SERVERS"

// SharedServerName returns the name of the Deployment and of the Service of a shared server.
func SharedServerName(prefix string, port int32) string {
	return fmt.Sprintf("%s-server-%d", prefix, port)
}

// URLFor returns the address of the server in a pod where the prefix of shared servers is known, or empty.
func (o *ORS) URLFor(prefix string) string {
	if o.Server == nil || !o.Server.Shared || prefix == "" {
		return o.URL
	}
	return fmt.Sprintf("http://%s:%d", SharedServerName(prefix, o.Server.Port), o.Server.Port)
}

func (o *ORS) validate(p *problems, path string) {
	p.require(o.URL != "", path+".url", "is needed")
	p.require(o.CreateSeconds >= 1, path+".createSeconds", "must be at least 1")
	p.require(o.CallSeconds >= 1, path+".callSeconds", "must be at least 1")
	p.require(o.MaxSessions >= 0, path+".maxSessions", "must be at least 0")
	p.require(o.AnswerTool == nil || o.AnswerTool.Name != "", path+".answerTool.name", "is needed")
	oneOf(p, path+".secretDelivery", o.SecretDelivery, "", DeliverHeader, DeliverBody, DeliverBoth)
	for _, s := range o.Secrets {
		p.require(s.Name != "" && s.Secret.Name != "" && s.Secret.Key != "", path+".secrets", "need a name and a Secret key")
	}
	if s := o.Server; s != nil {
		p.require(s.Image != "", path+".server.image", "is needed")
		p.require(s.Port >= 1, path+".server.port", "must be at least 1")
	}
}
