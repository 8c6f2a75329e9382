// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package bucket keeps named objects at a URL: in Amazon S3 or a compatible server, in Azure Blob Storage, or in Google
// Cloud Storage. Every call is bounded, and an object appears whole or not at all.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob:// is a container of Azure Blob Storage.
	_ "gocloud.dev/blob/s3blob"    // s3:// is a bucket of Amazon S3 or of a compatible server.
	"gocloud.dev/gcerrors"
)

// limit bounds a call, including the driver's repeats.
const limit = time.Minute

// Bucket has the objects below one URL. It is safe for concurrent use.
type Bucket struct {
	objects *blob.Bucket
	// address is the URL without its query, for messages.
	address string
}

// Open returns the bucket of a URL such as s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION. Drivers read their
// credentials from environment variables, which variable returns. Open requests nothing from the store.
func Open(ctx context.Context, address string, variable func(name string) string) (*Bucket, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parsing artifacts.url: %w", err)
	}
	prefix := strings.Trim(parsed.Path, "/")
	parsed.Path = ""
	objects, err := openBucket(ctx, parsed, variable)
	if err != nil {
		return nil, fmt.Errorf("opening artifacts.url: %w", err)
	}
	if prefix != "" {
		objects = blob.PrefixedBucket(objects, prefix+"/")
	}
	shown := url.URL{Scheme: parsed.Scheme, Host: parsed.Host}
	return &Bucket{objects: objects, address: shown.JoinPath(prefix).String()}, nil
}

func openBucket(ctx context.Context, address *url.URL, variable func(string) string) (*blob.Bucket, error) {
	if address.Scheme == schemeGoogle {
		return openGoogle(ctx, address.Host, variable)
	}
	return blob.OpenBucket(ctx, address.String())
}

// Close releases the driver's connections.
func (b *Bucket) Close() error { return b.objects.Close() }

// Create writes an object that does not exist yet. It fails with fs.ErrExist when the object exists: of several callers
// one succeeds.
func (b *Bucket) Create(ctx context.Context, name string, data []byte) error {
	return b.write(ctx, "creating", name, data, &blob.WriterOptions{IfNotExist: true})
}

// Put writes an object, or replaces it.
func (b *Bucket) Put(ctx context.Context, name string, data []byte) error {
	return b.write(ctx, "writing", name, data, nil)
}

func (b *Bucket) write(ctx context.Context, act, name string, data []byte, options *blob.WriterOptions) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := b.objects.WriteAll(ctx, name, data, options)
	if options != nil && gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%s %s: %w", act, b.at(name), fs.ErrExist)
	}
	return b.explain(act, name, err)
}

// Get returns an object. It fails with fs.ErrNotExist when there is no such object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	data, err := b.objects.ReadAll(ctx, name)
	if isMissing(err) {
		return nil, fmt.Errorf("reading %s: %w", b.at(name), fs.ErrNotExist)
	}
	return data, b.explain("reading", name, err)
}

// List returns the names of the objects that begin with a prefix, sorted.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	objects, err := b.Objects(ctx, prefix)
	var names []string
	for _, object := range objects {
		names = append(names, object.Name)
	}
	return names, err
}

// Object is an object of a bucket.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time
}

// Objects returns the objects whose names begin with a prefix, sorted by name.
func (b *Bucket) Objects(ctx context.Context, prefix string) ([]Object, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var found []Object
	for objects := b.objects.List(&blob.ListOptions{Prefix: prefix}); ; {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, b.explain("listing", prefix, err)
		}
		found = append(found, Object{object.Key, object.Size, object.ModTime})
	}
}

// Delete removes an object. It succeeds if the object does not exist.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := b.objects.Delete(ctx, name)
	if isMissing(err) {
		return nil
	}
	return b.explain("deleting", name, err)
}

// Check finds out whether the server has the guarantees that concurrent learners depend on: an object is created only
// once, can be read as soon as it is written, and is listed. It uses one object of that name, which it removes.
func (b *Bucket) Check(ctx context.Context, name string) error {
	if err := b.Delete(ctx, name); err != nil {
		return err
	}
	if err := b.Create(ctx, name, []byte("1")); err != nil {
		return err
	}
	if err := b.Create(ctx, name, []byte("2")); err == nil {
		return b.unfit("it replaces an object that was to be created only if it did not exist (If-None-Match)")
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if data, err := b.Get(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if string(data) != "1" {
		return b.unfit("it does not return an object that was just written")
	}
	if names, err := b.List(ctx, name); err != nil {
		return err
	} else if len(names) != 1 {
		return b.unfit("it does not list an object that was just written")
	}
	return b.Delete(ctx, name)
}

func (b *Bucket) unfit(reason string) error {
	return fmt.Errorf("the store at %s cannot hold a run's artifacts, since %s: give artifacts.url of another store, or "+
		"artifacts.claimName", b.address, reason)
}

func (b *Bucket) at(name string) string { return b.address + path.Join("/", name) }
