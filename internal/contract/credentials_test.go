// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var managerKey = bytes.Repeat([]byte{7}, 32)

func derive(t *testing.T, key []byte, uid string) Credentials {
	t.Helper()
	l, err := DeriveCredentials(key, uid)
	if err != nil {
		t.Fatalf("Derive: %v", err)
	}
	return l
}

func TestDerive(t *testing.T) {
	first := derive(t, managerKey, "uid-1")
	if diff := cmp.Diff(first, derive(t, managerKey, "uid-1")); diff != "" {
		t.Errorf("the same key and uid gave other credentials (-first +second):\n%s", diff)
	}
	for name, other := range map[string]Credentials{
		"another run has its own token": derive(t, managerKey, "uid-2"),
		"another key gives another one": derive(t, bytes.Repeat([]byte{8}, 32), "uid-1"),
	} {
		if other.Token == first.Token || bytes.Equal(other.PrivateKey, first.PrivateKey) || first.Authorizes(other.Token) {
			t.Errorf("%s: secrets are shared", name)
		}
	}
	if !first.Authorizes(first.Token) || first.Authorizes("") || (Credentials{}).Authorizes("") {
		t.Error("Authorizes takes the wrong tokens")
	}
	if _, err := DeriveCredentials(managerKey[:31], "uid-1"); err == nil {
		t.Error("a short manager key was taken")
	}
	if SecretSuffix(managerKey, "uid-1") == SecretSuffix(bytes.Repeat([]byte{8}, 32), "uid-1") {
		t.Errorf("Suffix does not depend on the key: got %v for both", SecretSuffix(managerKey, "uid-1"))
	}
}

func TestTokensOfWorkersAndManager(t *testing.T) {
	own := derive(t, managerKey, "uid-1")
	earlier := own
	earlier.ManagerToken = ""
	other := derive(t, managerKey, "uid-2")
	cases := map[string]struct {
		learner          Credentials
		token            string
		workers, manager bool
	}{
		"the workers' token":                             {own, own.Token, true, false},
		"the manager's token":                            {own, own.ManagerToken, false, true},
		"no token":                                       {own, "", false, false},
		"the workers' token of another run":              {own, other.Token, false, false},
		"the manager's token of another run":             {own, other.ManagerToken, false, false},
		"the workers' token at an earlier Secret":        {earlier, own.Token, true, true},
		"the manager's token at an earlier Secret":       {earlier, own.ManagerToken, false, false},
		"no token at an earlier Secret":                  {earlier, "", false, false},
		"no token at a learner without credentials":      {Credentials{}, "", false, false},
		"the workers' token without that of the learner": {Credentials{ManagerToken: own.ManagerToken}, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if workers, manager := tc.learner.Authorizes(tc.token),
				tc.learner.AuthorizesManager(tc.token); workers != tc.workers || manager != tc.manager {
				t.Errorf("authorized as a worker %t and as the manager %t, want %t and %t", workers, manager, tc.workers,
					tc.manager)
			}
		})
	}
}

func TestProofOfAnAttempt(t *testing.T) {
	own := derive(t, managerKey, "uid-1")
	proof, err := own.ProveAttempt("uid-1", 2)
	if err != nil {
		t.Fatal(err)
	}
	worker := Credentials{Token: own.Token, Certificate: own.Certificate}
	if !worker.ProvesAttempt("uid-1", 2, proof) {
		t.Error("the proof of the attempt is refused")
	}
	for name, refused := range map[string]bool{
		"another attempt":       own.ProvesAttempt("uid-1", 3, proof),
		"another run":           own.ProvesAttempt("uid-2", 2, proof),
		"another run's key":     derive(t, managerKey, "uid-2").ProvesAttempt("uid-1", 2, proof),
		"another manager's key": derive(t, bytes.Repeat([]byte{8}, 32), "uid-1").ProvesAttempt("uid-1", 2, proof),
		"no proof":              own.ProvesAttempt("uid-1", 2, nil),
		"no certificate":        Credentials{}.ProvesAttempt("uid-1", 2, proof),
	} {
		if refused {
			t.Errorf("%s: the proof is accepted", name)
		}
	}
	if _, err := worker.ProveAttempt("uid-1", 2); err == nil {
		t.Error("a worker makes a proof without the private key")
	}
}

func TestClientTLS(t *testing.T) {
	server := derive(t, managerKey, "uid-1")
	cases := map[string]struct {
		client Credentials
		ok     bool
	}{
		"the run's own certificate is trusted": {client: Credentials{Certificate: server.Certificate}, ok: true},
		"another run's certificate is not":     {client: derive(t, managerKey, "uid-2"), ok: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			httpServer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_,
					_ = io.WriteString(w, "ok")
			}))
			var err error
			if httpServer.TLS, err = server.ServerTLS(); err != nil {
				t.Fatal(err)
			}
			httpServer.Config.ErrorLog = nil
			httpServer.StartTLS()
			defer httpServer.Close()
			config, err := tc.client.ClientTLS()
			if err != nil {
				t.Fatal(err)
			}
			response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Get(httpServer.URL)
			if err == nil {
				_ = response.Body.Close()
			}
			if (err == nil) != tc.ok {
				t.Errorf("connecting: err = %v, want success %v", err, tc.ok)
			}
		})
	}
}
