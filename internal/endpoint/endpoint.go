// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint has the exchange between the manager and the broker of a TinkerEndpoint: the settings, which only
// the manager writes, and the report, which only the broker that holds the Lease writes. Both are ConfigMaps in the
// operator's namespace. The tokens that the broker bills stand in a third kind of ConfigMap, one for each day, which
// people read too.
package endpoint

import (
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// The keys of the ConfigMaps.
const (
	SettingsKey = "settings.json"
	ReportKey   = "report.json"
	// UsageKey is the key of a day's usage: a JSON object for each line, by Usage.
	UsageKey = "usage.jsonl"
)

// A release serves an endpoint if the status of the TinkerEndpoint has its namespace. Another release takes the
// endpoint over once it has seen no renewal for ClaimDuration. The brokers of the former release act for at most
// ClaimUse after the beginning of their last read of that status, and the brokers of the new release are made
// TakeoverDelay after the takeover.
const (
	ClaimDuration = 2 * time.Minute
	ClaimUse      = 15 * time.Second
	TakeoverDelay = 30 * time.Second
)

// dayLayout is the form of the day in the name of a day's usage, in UTC.
const dayLayout = "20060102"

// ObjectName is the name of the Deployment, the Service, the Lease and the Secrets of the broker of an endpoint.
func ObjectName(endpoint string) string { return "tinker-endpoint-" + endpoint }

// SettingsName is the name of the ConfigMap with the Settings.
func SettingsName(endpoint string) string { return ObjectName(endpoint) + "-settings" }

// ReportName is the name of the ConfigMap with the Report.
func ReportName(endpoint string) string { return ObjectName(endpoint) + "-report" }

// UsageName is the name of the ConfigMap with the usage of a day.
func UsageName(endpoint string, day time.Time) string {
	return ObjectName(endpoint) + "-usage-" + day.UTC().Format(dayLayout)
}

// UsageDays is the number of days for which the usage of a day is kept.
const UsageDays = 731

// DayOfUsage returns the day that the name of a ConfigMap with the usage of an endpoint contains; false for any other
// name.
func DayOfUsage(endpoint, name string) (time.Time, bool) {
	day, err := time.Parse(dayLayout, name[max(0, len(name)-len(dayLayout)):])
	return day, err == nil && name == UsageName(endpoint, day)
}

// Settings are the settings of a broker and its runs. The API key and the key of the tokens are not in them: they are
// in Secrets that the broker's pod mounts.
type Settings struct {
	// Endpoint is the name of the TinkerEndpoint, and Generation the generation of its spec.
	Endpoint   string `json:"endpoint"`
	Generation int64  `json:"generation"`
	// BaseURL is the address of the server, without /api/v1.
	BaseURL  string `json:"baseURL"`
	ProxyURL string `json:"proxyURL,omitempty"`
	// Project is the project that the service bills, or empty.
	Project string `json:"project,omitempty"`
	// Models are the base models that runs may use; empty for all.
	Models   []string   `json:"models,omitempty"`
	Readable []Readable `json:"readable,omitempty"`
	// Publication says that runs may publish their own checkpoints.
	Publication bool   `json:"publication,omitempty"`
	Limits      Limits `json:"limits,omitzero"`
	// Prices are the prices of models by name, for a million tokens.
	Prices  map[string]spending.Price `json:"prices,omitempty"`
	Budgets []Budget                  `json:"budgets,omitempty"`
	// Runs are the runs whose token counts.
	Runs []Run `json:"runs,omitempty"`
	// Connection is the digest of the other settings that decide the result of a check of the server.
	Connection string `json:"connection,omitempty"`
}

// Readable permits the runs of some namespaces to load, sample and inspect some checkpoints.
type Readable struct {
	Namespaces []string `json:"namespaces"`
	// Checkpoints are paths: tinker://RUN/KIND/NAME.
	Checkpoints []string `json:"checkpoints"`
}

// Limits are the limits that the runs of an endpoint share; 0 means no limit.
type Limits struct {
	// RequestsPerSecond limits the submits of all runs together. Polls do not count.
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty"`
	// UnfinishedSamples limits the sampling requests that were sent and have no result yet.
	UnfinishedSamples int `json:"unfinishedSamples,omitempty"`
}

// Period is how long a budget lasts.
type Period string

// The periods.
const (
	// PeriodMonth is a calendar month in UTC.
	PeriodMonth   Period = "Month"
	PeriodForever Period = "Forever"
)

// Budget limits the joint usage, in a period, of the runs that name it; 0 means no limit.
type Budget struct {
	Name   string  `json:"name"`
	USD    float64 `json:"usd,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Period Period  `json:"period"`
}

// Run is a run that an endpoint serves.
type Run struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Former is the UID of a deleted run whose objects count as the run's own, or empty.
	Former string `json:"former,omitempty"`
	// Model is the base model of the run.
	Model string `json:"model"`
	// User is the user who created the run; empty if that is not known.
	User string `json:"user,omitempty"`
	// Labels are the labels of the run.
	Labels map[string]string `json:"labels,omitempty"`
	// Weight is the run's share of the limits beside the shares of others; at least 1.
	Weight int `json:"weight"`
	// Budgets are the names of the budgets that count the run's usage.
	Budgets []string `json:"budgets,omitempty"`
}

// Tokens are the billed tokens, by the way in which a token was used.
type Tokens struct {
	// Prefill are the tokens of prompts, cached tokens among them.
	Prefill int64 `json:"prefill,omitempty"`
	// CachedPrefill are the tokens of prompts that the server says it had in its cache.
	CachedPrefill int64 `json:"cachedPrefill,omitempty"`
	Sample        int64 `json:"sample,omitempty"`
	// Train are the tokens of forward_backward, and Forward the tokens of forward.
	Train   int64 `json:"train,omitempty"`
	Forward int64 `json:"forward,omitempty"`
}

// Usage is a run's usage of a model on a day: a line of a day's ConfigMap, which the broker replaces as it grows.
type Usage struct {
	// Day is the first second of the day in UTC.
	Day       time.Time         `json:"day"`
	UID       string            `json:"uid"`
	Namespace string            `json:"namespace"`
	Run       string            `json:"run"`
	Labels    map[string]string `json:"labels,omitempty"`
	User      string            `json:"user,omitempty"`
	Model     string            `json:"model"`
	Tokens    Tokens            `json:"tokens"`
	// USD is the cost of the tokens by the prices of the time when each was counted, and Unpriced the number of tokens
	// without a price.
	USD      float64 `json:"usd,omitempty"`
	Unpriced int64   `json:"unpriced,omitempty"`
}

// Report is a broker's report of its work. A broker writes it at most every few seconds.
type Report struct {
	// Time is when the report was made, and Identity the identity of its author in the Lease.
	Time     time.Time `json:"time"`
	Identity string    `json:"identity"`
	// Generation is the generation of the settings in force.
	Generation int64 `json:"generation"`
	// KeyRefused is the server's message while it refuses the API key, and Unreachable the error while it does not answer.
	KeyRefused  string `json:"keyRefused,omitempty"`
	Unreachable string `json:"unreachable,omitempty"`
	// UnreachableCode is the code of a server that is not the Tinker API, or with which the broker does not agree on TLS;
	// otherwise it is empty.
	UnreachableCode problem.Code `json:"unreachableCode,omitempty"`
	// RecordsFailed is why the broker can record nothing, or empty.
	RecordsFailed string `json:"recordsFailed,omitempty"`
	// Budgets have the usage of each budget in its present period.
	Budgets []BudgetUsage `json:"budgets,omitempty"`
	// Throttled are the runs that waited for their share in the last minute.
	Throttled []Throttled `json:"throttled,omitempty"`
	// Checks have the supported features of the server, at most MaxChecks.
	Checks []Check `json:"checks,omitempty"`
}

const (
	// CheckLife is the time for which runs rely on a check of the server.
	CheckLife = 24 * time.Hour
	// MaxChecks bounds the checks of an endpoint.
	MaxChecks = 64
)

// Check has the features that the server supports with a base model and a choice of the matrices that are trained, by
// the names of package capability, sorted. A feature in none of the lists was not checked.
type Check struct {
	Model string `json:"model"`
	// TrainModules are values of the TrainingRun's model.trainModules, sorted.
	TrainModules []string `json:"trainModules,omitempty"`
	Supported    []string `json:"supported,omitempty"`
	// Ignored are accepted without an effect, and Undecided were checked without a result.
	Ignored     []string `json:"ignored,omitempty"`
	Unsupported []string `json:"unsupported,omitempty"`
	Undecided   []string `json:"undecided,omitempty"`
	// CheckedAt is when the oldest of the findings was made; zero if there are none.
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// ClientVersion is the version of the broker that checked, and Connection the digest of its settings.
	ClientVersion string `json:"clientVersion,omitempty"`
	Connection    string `json:"connection,omitempty"`
	// Checking says that a check is in progress, and Refused is the message with which the server refused the last one.
	Checking bool   `json:"checking,omitempty"`
	Refused  string `json:"refused,omitempty"`
}

// Answers reports whether a feature was checked, with or without a result.
func (c Check) Answers(feature string) bool {
	return slices.Contains(c.Supported, feature) || slices.Contains(c.Ignored, feature) ||
		slices.Contains(c.Unsupported, feature) || slices.Contains(c.Undecided, feature)
}

// BudgetUsage is the usage of a budget.
type BudgetUsage struct {
	Name string `json:"name"`
	// Since is when the period began; zero for a budget without end.
	Since  time.Time `json:"since,omitzero"`
	Tokens int64     `json:"tokens"`
	USD    float64   `json:"usd"`
}

// Throttled is a run that waited for its share.
type Throttled struct {
	UID string `json:"uid"`
	// Share is the part of the limits that the run gets while it waits, above 0 and at most 1.
	Share float64 `json:"share"`
	// Waiting is how many of its requests wait now.
	Waiting int `json:"waiting"`
}
