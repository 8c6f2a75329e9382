// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Budget limits the tokens, dollars and time of the run. Once a limit is reached, the run stops at a saved state and is
// suspended with the reason BudgetReached; raising the limit continues it. The run may exceed the limit by the batches,
// at most algorithm.lag + 1, and the evaluations that are being sampled at that moment.
// +kubebuilder:validation:XValidation:rule="has(self.tokens) || has(self.usd) || has(self.activeSeconds)",message="budget has no limit: give tokens, usd or activeSeconds, or remove budget"
// +kubebuilder:validation:XValidation:rule="!has(self.prices) || has(self.usd)",message="prices need usd, which is computed with them: give usd, or remove prices"
type Budget struct {
	// tokens limits all tokens of the run: prompt, sampled and trained tokens, the tokens of judges and of the reference
	// of a KL penalty, and unconfirmed tokens.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Tokens *int64 `json:"tokens,omitempty"`
	// usd limits the cost of all tokens, in dollars, at budget.prices, or else at the prices of the TinkerEndpoint, or
	// else at the prices of the operator's table. A run with a model whose price is not known is refused.
	// +kubebuilder:validation:Minimum=0.01
	// +kubebuilder:validation:XValidation:rule="self >= 0.01",message="should be greater than or equal to 0.01: raise it, or remove it"
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	USD *float64 `json:"usd,omitempty"`
	// activeSeconds limits the time in which attempts of the run are in progress.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveSeconds *int64 `json:"activeSeconds,omitempty"`
	// prices are prices of models, which take precedence over the tables of the TinkerEndpoint and of the operator. A
	// change takes effect with the learner's next attempt.
	// +listType=map
	// +listMapKey=model
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Prices []ModelPrice `json:"prices,omitempty"`
}

// ModelPrice is the price of a model's tokens.
type ModelPrice struct {
	// model is the name of a base model or of a judge's model, or the tinker:// path of a checkpoint that is a judge.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Model string `json:"model"`
	// promptUSDPerMillion is the price of a million tokens of prompts, in dollars.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	PromptUSDPerMillion float64 `json:"promptUSDPerMillion"`
	// cachedPromptUSDPerMillion is the price of a million tokens of prompts that the endpoint had in its cache, in
	// dollars. Defaults to promptUSDPerMillion.
	// +kubebuilder:validation:Minimum=0.000001
	// +kubebuilder:validation:XValidation:rule="self >= 0.000001",message="should be greater than or equal to 0.000001"
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	CachedPromptUSDPerMillion *float64 `json:"cachedPromptUSDPerMillion,omitempty"`
	// sampledUSDPerMillion is the price of a million sampled tokens, in dollars.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	SampledUSDPerMillion float64 `json:"sampledUSDPerMillion"`
	// trainedUSDPerMillion is the price of a million tokens that are trained on, in dollars. Write 0 for a model that only
	// judges.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	TrainedUSDPerMillion float64 `json:"trainedUSDPerMillion,omitempty"`
}
