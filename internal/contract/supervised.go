// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// TrainSplit is the split of a data set whose rows a supervised run trains on.
const TrainSplit = "train"

// Supervised is the data of a supervised run. TrainOn and Normalization have the values of the API.
type Supervised struct {
	Dataset       Dataset `json:"dataset"`
	TrainOn       string  `json:"trainOn"`
	BatchSize     int     `json:"batchSize"`
	MaxTokens     int     `json:"maxTokens,omitempty"`
	Normalization string  `json:"normalization"`
	// MinReward and BestOfTask leave out records of episodes.
	MinReward  *float64 `json:"minReward,omitempty"`
	BestOfTask bool     `json:"bestOfTask,omitempty"`
}

// HeldOut is a split whose rows are held out: their negative log-likelihood is measured. Take is the number of rows
// that are used, counted from the first; 0 means all.
type HeldOut struct {
	Name string `json:"name"`
	Take int64  `json:"take,omitempty"`
}

func (s *Supervised) validate(p *problems) {
	if s == nil {
		return
	}
	const path = "fixed.supervised"
	s.Dataset.validate(p, path+".dataset")
	p.require(s.BatchSize >= 1, path+".batchSize", "must be at least 1")
	p.require(s.MaxTokens == 0 || s.MaxTokens > 1, path+".maxTokens", "must be at least 2")
	p.require(s.TrainOn != "" && s.Normalization != "", path, "needs trainOn and normalization")
}

// Pinned returns the data set with the contents that an earlier attempt has read.
func (s Supervised) Pinned(contents *DataContents) Dataset {
	d := s.Dataset
	if contents != nil && !d.Generated() {
		d.Contents = contents
	}
	return d
}
