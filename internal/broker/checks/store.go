// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// fileName is the name of the file in the folder of the records.
const fileName = "checks.json"

// read reads the findings of an earlier broker. A file that cannot be decoded counts as missing: the server is checked
// again.
func (c *Checks) read() error {
	data, err := os.ReadFile(filepath.Join(c.config.Dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the checks: %w", err)
	}
	var all []endpoint.Check
	if err := json.Unmarshal(data, &all); err != nil {
		c.config.Logger.Warn("the file of the checks cannot be decoded; the server is checked again", "err", err)
		return nil
	}
	for _, found := range all {
		of := key{model: found.Model}
		for _, part := range parts {
			*part.trains(&of) = slices.Contains(found.TrainModules, part.name)
		}
		c.known[of] = &entry{Check: found, asked: found.CheckedAt}
	}
	return nil
}

// write writes the findings. If they cannot be written, they stay in memory until the broker ends, and the next broker
// checks again.
func (c *Checks) write() {
	c.writing.Lock()
	defer c.writing.Unlock()
	var all []endpoint.Check
	for _, found := range c.Report() {
		if found.Checking, found.Refused = false, ""; !found.CheckedAt.IsZero() {
			all = append(all, found)
		}
	}
	data, err := json.Marshal(all)
	if err == nil {
		err = c.config.Lease()
	}
	if err == nil {
		err = atomicfile.WriteDurable(filepath.Join(c.config.Dir, fileName), 0o600, data)
	}
	if err != nil {
		c.config.Logger.Warn("the checks are not recorded", "err", err)
	}
}
