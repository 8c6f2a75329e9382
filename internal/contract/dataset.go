// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"path"
	"strings"
)

// Dataset says where tasks come from; exactly one of its first four members is set.
type Dataset struct {
	Arithmetic  *Arithmetic    `json:"arithmetic,omitempty"`
	Countdown   *CountdownData `json:"countdown,omitempty"`
	HuggingFace *HuggingFace   `json:"huggingFace,omitempty"`
	JSONL       *JSONL         `json:"jsonl,omitempty"`
	// Fields maps names of fields to columns.
	Fields map[string]string `json:"fields,omitempty"`
	// Prompt and SystemPrompt are templates; empty for none.
	Prompt       string          `json:"prompt,omitempty"`
	SystemPrompt string          `json:"systemPrompt,omitempty"`
	Examples     []PromptExample `json:"examples,omitempty"`
	// Splits are empty for the data's own.
	Splits []DataSplit `json:"splits,omitempty"`
	// Contents pins what the probe read; nil for the probe itself, and for tasks that are generated.
	Contents *DataContents `json:"contents,omitempty"`
}

// Arithmetic generates sums of operands from 0 to MaxOperand.
type Arithmetic struct {
	MaxOperand int `json:"maxOperand"`
}

// CountdownData generates tasks of MinNumbers to MaxNumbers numbers from 1 to MaxNumber.
type CountdownData struct {
	MinNumbers int   `json:"minNumbers"`
	MaxNumbers int   `json:"maxNumbers"`
	MaxNumber  int   `json:"maxNumber"`
	Tasks      int64 `json:"tasks"`
}

// HuggingFace is a data set of the hub.
type HuggingFace struct {
	Repository string `json:"repository"`
	Config     string `json:"config,omitempty"`
	// Revision is empty for main.
	Revision string `json:"revision,omitempty"`
	// BaseURL is the hub's; it is empty for the public one.
	BaseURL string `json:"baseURL,omitempty"`
	// Token is the Secret key with the token; nil for none.
	Token *SecretKey `json:"token,omitempty"`
}

// SecretKey names a key of a Secret, which is mounted.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// JSONL is files in a ConfigMap, in a claim or at a URL; exactly one of its members.
type JSONL struct {
	ConfigMap string `json:"configMap,omitempty"`
	Claim     string `json:"claim,omitempty"`
	URL       string `json:"url,omitempty"`
}

// PromptExample is an exchange that stands before the prompt.
type PromptExample struct {
	Prompt string `json:"prompt"`
	Reply  string `json:"reply"`
}

// DataSplit cuts a split out of the data: shuffle, then skip, then take. One of Source and Of is set.
type DataSplit struct {
	Name        string `json:"name"`
	Source      string `json:"source,omitempty"`
	Of          string `json:"of,omitempty"`
	SHA256      string `json:"sha256,omitempty"`
	ShuffleSeed *int64 `json:"shuffleSeed,omitempty"`
	Skip        int64  `json:"skip,omitempty"`
	Take        *int64 `json:"take,omitempty"`
}

// DataContents is what was read.
type DataContents struct {
	// Revision is the commit of a repository.
	Revision string       `json:"revision,omitempty"`
	Sources  []DataSource `json:"sources"`
}

// DataSource is a file, or a split of the hub.
type DataSource struct {
	Name string `json:"name"`
	// SHA256 is that of the file; for a split of the hub, of the list of its files with their digests.
	SHA256 string `json:"sha256"`
	Rows   int64  `json:"rows"`
}

// DataDir is where pods have what data sets refer to.
const DataDir = "/etc/tinker-operator/data"

// Mount returns the folder below DataDir in which the Secret is mounted.
func (s SecretKey) Mount() string { return path.Join("secret", s.Name) }

// Mount returns the folder below DataDir in which the files are mounted. It is empty for a URL.
func (j JSONL) Mount() string {
	switch {
	case j.ConfigMap != "":
		return path.Join("configmap", j.ConfigMap)
	case j.Claim != "":
		return path.Join("claim", j.Claim)
	default:
		return ""
	}
}

// Generated reports whether the tasks are generated, so that there is nothing to be read or pinned.
func (d Dataset) Generated() bool { return d.HuggingFace == nil && d.JSONL == nil }

// SHA256 returns the digest that a source must have: the one that was pinned, or else the one of the definition. It is
// empty if the source may have any.
func (d Dataset) SHA256(source string) string {
	if d.Contents != nil {
		for _, s := range d.Contents.Sources {
			if s.Name == source {
				return s.SHA256
			}
		}
	}
	for _, s := range d.Splits {
		if s.Source == source && s.SHA256 != "" {
			return s.SHA256
		}
	}
	return ""
}

func (d *Dataset) validate(p *problems, path string) {
	const kinds = "must be one of arithmetic, countdown, huggingFace and jsonl"
	if d == nil {
		p.require(false, path, kinds)
		return
	}
	set := 0
	for _, given := range []bool{d.Arithmetic != nil, d.Countdown != nil, d.HuggingFace != nil, d.JSONL != nil} {
		if given {
			set++
		}
	}
	p.require(set == 1, path, kinds)
	d.validateSource(p, path)
	d.validateSplits(p, path)
	if d.Contents != nil {
		p.require(!d.Generated() && len(d.Contents.Sources) > 0, path+".contents", "are those of data that is read")
		for _, s := range d.Contents.Sources {
			p.require(s.Name != "" && len(s.SHA256) == 64, path+".contents.sources",
				"%q needs a name and a digest of 64 hex digits", s.Name)
		}
	}
}

// validateSource checks where the rows come from.
func (d *Dataset) validateSource(p *problems, path string) {
	if a := d.Arithmetic; a != nil {
		p.require(a.MaxOperand >= 1, path+".arithmetic.maxOperand", "must be at least 1")
	}
	if h := d.HuggingFace; h != nil {
		p.require(h.Repository != "", path+".huggingFace.repository", "is needed")
		p.require(h.Token == nil || h.Token.Name != "" && h.Token.Key != "", path+".huggingFace.token", "needs name and key")
	}
	if j := d.JSONL; j != nil {
		p.require((j.ConfigMap != "") != (j.Claim != "") != (j.URL != "") && (j.ConfigMap == "" || j.Claim == ""),
			path+".jsonl", "must be one of configMap, claim and url")
		p.require(len(d.Splits) > 0, path+".splits", "are needed for jsonl")
	}
}

func (d *Dataset) validateSplits(p *problems, path string) {
	names := map[string]bool{}
	for i, s := range d.Splits {
		at := fmt.Sprintf("%s.splits[%d]", path, i)
		p.require(s.Name != "" && !names[s.Name], at+".name", "is needed, once")
		names[s.Name] = true
		s.validate(p, at)
		needsDigest := d.JSONL != nil && d.JSONL.URL != "" && s.Of == ""
		p.require(!needsDigest || d.SHA256(s.Source) != "", at+".sha256", "is needed for a URL")
	}
}

func (s DataSplit) validate(p *problems, path string) {
	p.require((s.Source != "") != (s.Of != ""), path, "must have one of source and of")
	p.require(s.SHA256 == "" || len(s.SHA256) == 64, path+".sha256", "must have 64 hex digits")
	p.require(s.ShuffleSeed == nil || *s.ShuffleSeed >= 0, path+".shuffleSeed", "must be at least 0")
	p.require(s.Skip >= 0, path+".skip", "must be at least 0")
	p.require(s.Take == nil || *s.Take >= 1, path+".take", "must be at least 1")
	for part := range strings.SplitSeq(s.Source, "/") {
		p.require(s.Source == "" || part != "" && part != "." && part != "..", path+".source",
			"must be a path within the data")
	}
}
