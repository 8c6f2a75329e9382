// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"path"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// Dataset is a data set as it was pinned. Each split has a source or is a part of another split.
type Dataset struct {
	environment.Dataset
	// Contents pins the data that the probe read; nil for the probe itself, and for tasks that are generated.
	Contents *DataContents `json:"contents,omitempty"`
}

// DataContents identifies the data that were read.
type DataContents struct {
	// Revision is the commit of a repository.
	Revision string       `json:"revision,omitempty"`
	Sources  []DataSource `json:"sources"`
}

// DataSource is a file, or a split of a data set of the hub.
type DataSource struct {
	Name string `json:"name"`
	// SHA256 is the digest of the file, or, for a split of the hub, of the list of its files with their digests.
	SHA256 string `json:"sha256"`
	Rows   int64  `json:"rows"`
}

// DataDir is the folder in which pods have the ConfigMaps, Secrets and volumes that data sets refer to.
const DataDir = "/etc/tinker-operator/data"

// SecretMount returns the folder below DataDir in which the Secret of a key is mounted.
func SecretMount(key ref.SecretKey) string { return path.Join("secret", key.Name) }

// FilesMount returns the folder below DataDir in which files are mounted. It is empty for a URL.
func FilesMount(j environment.JSONL) string {
	switch {
	case j.ConfigMapRef != nil:
		return path.Join("configmap", j.ConfigMapRef.Name)
	case j.ClaimName != "":
		return path.Join("claim", j.ClaimName)
	default:
		return ""
	}
}

// Generated reports whether the tasks are generated, so that there is nothing to be read or pinned.
func (d Dataset) Generated() bool { return d.Hub == nil && d.JSONL == nil }

// SHA256 returns the digest that a source must have: the one that was pinned, or else the one of the definition. It
// is empty if the source may have any digest.
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
	if d.Contents == nil {
		return
	}
	p.require(!d.Generated() && len(d.Contents.Sources) > 0, path+".contents", "are those of data that is read")
	for _, s := range d.Contents.Sources {
		p.require(s.Name != "" && len(s.SHA256) == 64, path+".contents.sources",
			"%q needs a name and a digest of 64 hex digits", s.Name)
	}
}
