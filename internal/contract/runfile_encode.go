// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EncodeRunFile returns the run file's JSON. It returns an error if the file is invalid, so that no file is written
// that its readers would refuse.
func EncodeRunFile(f RunFile) ([]byte, error) {
	err := f.Validate()
	if err == nil {
		err = f.checkRead()
	}
	if err != nil {
		return nil, fmt.Errorf("encoding run file: %w", err)
	}
	return marshal(storeFile(f))
}

// DecodeRunFile reads a run file, and checks its version, digest and attempt. It does not validate the settings,
// since the manager has done so. The version is checked first, and the error is a *VersionError if this build does
// not read it. A field that this build does not know is an error, because it would be a setting without effect.
func DecodeRunFile(data []byte) (RunFile, error) {
	var versioned struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &versioned); err != nil {
		return RunFile{}, fmt.Errorf("decoding run file: %w", err)
	}
	if err := CheckVersion("the run file", versioned.Version, "this build"); err != nil {
		return RunFile{}, fmt.Errorf("decoding run file: %w", err)
	}
	var stored storedFile
	if err := decodeStrictly(data, &stored); err != nil {
		return RunFile{}, fmt.Errorf("decoding run file: %w", err)
	}
	f, err := stored.file()
	if err == nil {
		err = f.intact()
	}
	if err != nil {
		return RunFile{}, fmt.Errorf("decoding run file: %w", err)
	}
	return f, nil
}

// intact checks that the settings are the ones that the manager digested, and that the file belongs to an attempt.
func (f RunFile) intact() error {
	if f.Attempt < 1 {
		return fmt.Errorf("attempt is %d, and attempts count from 1", f.Attempt)
	}
	digest, err := SpecDigest(f.Fixed)
	if err == nil && digest != f.SpecDigest {
		err = fmt.Errorf("specDigest is %s, and the settings have the digest %s", f.SpecDigest, digest)
	}
	return err
}

// EncodeDefinition returns the JSON of a definition, which the probe reads.
func EncodeDefinition(d Definition) ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("encoding definition: %w", err)
	}
	return marshal(d)
}

// DecodeDefinition reads the output of EncodeDefinition.
func DecodeDefinition(data []byte) (Definition, error) {
	var d Definition
	if err := decodeStrictly(data, &d); err != nil {
		return Definition{}, fmt.Errorf("decoding definition: %w", err)
	}
	return d, nil
}

// decodeStrictly refuses fields that this build does not know.
func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func marshal(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return append(data, '\n'), nil
}

// checkRead checks that the file has the text of every ConfigMap of a template or a function, since pods do not read
// these ConfigMaps.
func (f RunFile) checkRead() error {
	if template := f.Fixed.Model.Template; template != nil && template.Unread != nil {
		return fmt.Errorf("ConfigMap %q of the model's template was not read", template.Unread.Name)
	}
	for _, definition := range f.Definitions() {
		if err := definition.CheckRead(); err != nil {
			return err
		}
	}
	return nil
}
