// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// entries limits the remembered decisions.
	entries = 1024
	// admittedFor and refusedFor are how long a decision is remembered.
	admittedFor = time.Minute
	refusedFor  = 10 * time.Second
	// patience limits the two requests to the API server.
	patience = 10 * time.Second
)

// decision is the status with which a request is answered; StatusOK admits the request.
type decision struct {
	status int
	user   string
}

// reviewer asks the API server for the user of a token and the user's permissions.
type reviewer struct {
	tokens  authentication.TokenReviewInterface
	access  authorization.SubjectAccessReviewInterface
	decided *cache.LRUExpireCache
}

// Filter is a metricsserver.Options.FilterProvider. A request needs a bearer token of a user who may use its method,
// such as get, on its path, a non-resource URL. It works like controller-runtime's package metrics/filters, but without
// the libraries of the API server, which make up a third of a manager that links them. The manager needs the right to
// create TokenReviews and SubjectAccessReviews.
func Filter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	tokens, err := authentication.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	access, err := authorization.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	r := &reviewer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(),
		decided: cache.NewLRUExpireCache(entries)}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			found, err := r.decide(request)
			switch {
			case err != nil:
				log.Error(err, "asking the API server whether a client may read the metrics")
				http.Error(w, "the API server does not say whether the client may read the metrics", http.StatusInternalServerError)
			case found.status == http.StatusUnauthorized:
				http.Error(w, "the request needs a bearer token that the API server accepts", found.status)
			case found.status == http.StatusForbidden:
				http.Error(w, "user "+found.user+" may not "+verb(request)+" "+request.URL.Path, found.status)
			default:
				next.ServeHTTP(w, request)
			}
		}), nil
	}, nil
}

func verb(request *http.Request) string { return strings.ToLower(request.Method) }

// decide returns the decision about a request, which it remembers for some time. The token itself is not kept.
func (r *reviewer) decide(request *http.Request) (decision, error) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return decision{status: http.StatusUnauthorized}, nil
	}
	key := sha256.Sum256([]byte(token + "\x00" + verb(request) + "\x00" + request.URL.Path))
	if known, ok := r.decided.Get(key); ok {
		return known.(decision), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	found, err := r.review(ctx, token, authorizationv1.NonResourceAttributes{Path: request.URL.Path, Verb: verb(request)})
	if err != nil {
		return decision{}, err
	}
	period := refusedFor
	if found.status == http.StatusOK {
		period = admittedFor
	}
	r.decided.Add(key, found, period)
	return found, nil
}

// review asks the API server whose token this is, and whether that user has access.
func (r *reviewer) review(ctx context.Context, token string,
	access authorizationv1.NonResourceAttributes) (decision, error) {
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	reviewed, err := r.tokens.Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return decision{}, err
	}
	if !reviewed.Status.Authenticated {
		return decision{status: http.StatusUnauthorized}, nil
	}
	user := reviewed.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	answer, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &access, User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
	}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, err
	}
	if !answer.Status.Allowed || answer.Status.Denied {
		return decision{status: http.StatusForbidden, user: user.Username}, nil
	}
	return decision{status: http.StatusOK, user: user.Username}, nil
}
