// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// cache holds the weights that were used most recently.
type cache struct {
	size int
	load func(key string) (*model.Weights, error)

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  *list.List // of entry, the most recently used first
}

type entry struct {
	key     string
	weights *model.Weights
}

func newCache(size int, load func(string) (*model.Weights, error)) *cache {
	return &cache{size: size, load: load, byKey: map[string]*list.Element{}, used: list.New()}
}

// get returns the weights of a key. Two callers may load the same weights at the same time, which costs
// time but is correct.
func (c *cache) get(key string) (*model.Weights, error) {
	if weights := c.peek(key); weights != nil {
		return weights, nil
	}
	weights, err := c.load(key)
	if err != nil {
		return nil, fmt.Errorf("loading weights: %w", err)
	}
	c.put(key, weights)
	return weights, nil
}

func (c *cache) peek(key string) *model.Weights {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.used.MoveToFront(element)
	return element.Value.(entry).weights
}

// clear removes all weights.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.used.Init()
}

func (c *cache) put(key string, weights *model.Weights) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.used.MoveToFront(element)
		return
	}
	c.byKey[key] = c.used.PushFront(entry{key: key, weights: weights})
	for c.used.Len() > c.size {
		oldest := c.used.Remove(c.used.Back()).(entry)
		delete(c.byKey, oldest.key)
	}
}
