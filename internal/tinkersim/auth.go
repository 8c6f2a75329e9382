// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// tokenTTL is the time for which a token is valid.
const tokenTTL = 10 * time.Minute

// jwtHeader is the first part of each token.
var jwtHeader = encode([]byte(`{"alg":"HS256","typ":"JWT"}`))

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// authorized reports whether a key or token is valid.
func (s *Server) authorized(key string) bool {
	if rest, ok := strings.CutPrefix(key, jwtHeader+"."); ok && s.options.Config.PJWTAuthEnabled {
		var claims claims
		return s.verify(rest, &claims) == nil && s.options.Clock().Unix() < claims.Expires
	}
	if s.options.APIKey != "" {
		return subtle.ConstantTimeCompare([]byte(key), []byte(s.options.APIKey)) == 1
	}
	return strings.HasPrefix(key, "tml-")
}

// claims is the payload of a token.
type claims struct {
	Subject string `json:"sub"`
	// Organization is shown to users by newer SDKs.
	Organization string `json:"org_id"`
	Expires      int64  `json:"exp"`
	Issued       int64  `json:"iat"`
}

// exchangeKey responds with a token for the key of the request.
func (s *Server) exchangeKey(*request) (response, error) {
	if !s.options.Config.PJWTAuthEnabled {
		return response{}, newHTTPError(http.StatusNotFound, "this server does not exchange keys for tokens")
	}
	now := s.options.Clock()
	signed, err := s.sign(claims{Subject: "urn:tinkersim:" + state.Owner, Organization: state.Owner,
		Expires: now.Add(tokenTTL).Unix(), Issued: now.Unix()})
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, tinker.TokenResponse{JWT: jwtHeader + "." + signed})
}

// sign returns an encoded value with its signature.
func (s *Server) sign(value any) (string, error) {
	payload, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	text := encode(payload)
	return text + "." + encode(s.mac(text)), nil
}

// verify decodes a value that sign returned.
func (s *Server) verify(signed string, value any) error {
	text, signature, _ := strings.Cut(signed, ".")
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(mac, s.mac(text)) {
		return errors.New("verifying a signature: it does not match")
	}
	payload, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(payload, value)
}

func (s *Server) mac(text string) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(jwtHeader + "." + text))
	return mac.Sum(nil)
}
