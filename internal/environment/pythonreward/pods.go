// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
)

// How long the addresses of pods are used, and how long a look-up may take.
const (
	addressesFor  = 3 * time.Second
	lookUpTimeout = 5 * time.Second
)

// Pods are pods whose runners serve callers over TCP. It is safe for concurrent use.
type Pods struct {
	// Name resolves to the addresses of the pods that are ready.
	Name string
	Port int
	// TLS returns a configuration that trusts the certificate of the runners. It is called for each connection, since the
	// certificate of a warm pool may be renewed. Token is the token that the runners require.
	TLS   func() (*tls.Config, error)
	Token string
	// Now is the clock.
	Now func() time.Time
	// LookUp returns the addresses of a name. Defaults to the name service.
	LookUp func(ctx context.Context, name string) ([]string, error)

	mu    sync.Mutex
	known []string
	at    time.Time
}

// addresses returns the addresses of the pods that are ready. If the name service does not answer, it returns the
// addresses of the last answer.
func (p *Pods) addresses(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) > 0 && p.Now().Sub(p.at) < addressesFor {
		return p.known, nil
	}
	lookUp := p.LookUp
	if lookUp == nil {
		lookUp = net.DefaultResolver.LookupHost
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	found, err := lookUp(ctx, p.Name)
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound, err == nil && len(found) == 0:
		p.known = nil
		return nil, fmt.Errorf("no pod of Service %s is ready", p.Name)
	case err != nil && len(p.known) == 0:
		return nil, fmt.Errorf("looking up the pods of Service %s: %w", p.Name, err)
	case err == nil:
		p.known = make([]string, len(found))
		for i, host := range found {
			p.known[i] = host
			if _, _, err := net.SplitHostPort(host); err != nil {
				p.known[i] = net.JoinHostPort(host, strconv.Itoa(p.Port))
			}
		}
	}
	p.at = p.Now()
	return p.known, nil
}

// inOrder sorts addresses by the preference of a call. Calls are spread evenly over the addresses, and the loss of an
// address moves only the calls that preferred it.
func inOrder(addresses []string, key uint64) []string {
	if len(addresses) < 2 {
		return addresses
	}
	score := make(map[string]uint64, len(addresses))
	for _, address := range addresses {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(address))
		_, _ = hash.Write(binary.LittleEndian.AppendUint64(nil, key))
		mixed := hash.Sum64() // whose high bits depend little on the last bytes
		mixed ^= mixed >> 32
		mixed *= 0xd6e8feb86659fd93
		score[address] = mixed ^ mixed>>32
	}
	ordered := slices.Clone(addresses)
	slices.SortFunc(ordered, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	return ordered
}

// keyOf returns the key of a call, which decides the order of the pods that it prefers.
func keyOf(call client.Call) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write(call.Params)
	return hash.Sum64() ^ call.Seed
}
