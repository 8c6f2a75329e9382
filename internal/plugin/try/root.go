// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

func (t *trial) root() string { return filepath.Join(t.dir, "data") }

// fillRoot makes the folder with the mounts of a pod: ConfigMaps, claims and Secrets.
func (t *trial) fillRoot() error {
	for kind, folder := range map[string]string{"ConfigMap": "configmap", "Secret": "secret"} {
		objects, err := t.input.files(kind)
		if err != nil {
			return err
		}
		for name, files := range objects {
			if err := checkName(name); err != nil {
				return fmt.Errorf("metadata.name of a %s: %w", kind, err)
			}
			if err := writeFiles(filepath.Join(t.root(), folder, name), files); err != nil {
				return err
			}
		}
	}
	for _, given := range []struct {
		flag    string
		values  []string
		folders []string
	}{{"--data", t.data, []string{"claim", "configmap"}}, {"--secret", t.secrets, []string{"secret"}}} {
		for _, value := range given.values {
			if err := t.mount(given.flag, value, given.folders); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillCode puts the code of ConfigMaps into the specs of the environments.
func (t *trial) fillCode() error {
	for name, environment := range t.input.environments {
		_, unreadable, err := desired.FillCode(environment.Spec.Reward, environment.Spec.Interaction, t.readKey)
		if err != nil {
			return err
		}
		if unreadable != nil {
			return fmt.Errorf("RewardEnvironment %q (%s): %s", name, unreadable.Code, unreadable.Evidence)
		}
	}
	return nil
}

// readKey reads a key of a ConfigMap that the file has, or whose folder --data names.
func (t *trial) readKey(key ref.ConfigMapKey) (text, missing string, err error) {
	if checkName(key.Name) != nil || filepath.Base(key.Key) != key.Key {
		return "", fmt.Sprintf("%s/%s is not the name of a ConfigMap and its key", key.Name, key.Key), nil
	}
	data, err := os.ReadFile(filepath.Join(t.root(), "configmap", key.Name, key.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Sprintf("key %q of ConfigMap %q is not here: put the ConfigMap into the file, or give its files "+
			"with --data %s=DIR", key.Key, key.Name, key.Name), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("reading ConfigMap %s: %w", key.Name, err)
	}
	return string(data), "", nil
}

// mount uses a folder of this machine for a claim, ConfigMap or Secret.
func (t *trial) mount(flag, value string, folders []string) error {
	name, dir, ok := strings.Cut(value, "=")
	if !ok || dir == "" || checkName(name) != nil {
		return cli.Misused("%s: %q is not NAME=DIR, where NAME is that of an object in Kubernetes", flag, value)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return cli.Misused("%s: %s is not a folder", flag, dir)
	}
	for _, folder := range folders {
		link := filepath.Join(t.root(), folder, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.RemoveAll(link); err != nil {
			return fmt.Errorf("replacing %s: %w", link, err)
		}
		if err := os.Symlink(dir, link); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// checkName refuses a text that is not the name of an object, such as a path that leads out of the folder.
func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a valid name: %s", name, problems[0])
	}
	return nil
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600); err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
	}
	return nil
}
