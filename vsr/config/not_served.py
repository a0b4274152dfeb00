"""What the canonical document knows and this version does not serve yet.

A key or value leaves this table when its feature arrives; nothing else has to change.
"""

from collections.abc import Mapping

NOT_SERVED_KEYS: Mapping[str, frozenset[str]] = {
    cls: frozenset(keys.split())
    for cls, keys in {
        "Document": "entrypoints evaluation recipes setup",
        "Listener": "identity models systemone tls",
        "Providers": "",
        "ProviderDefaults": "reasoning_effort",
        "ProviderModel": "catalog pricing reasoning",
        "BackendRef": "",
        "Reliability": """
            base_ejection_time consecutive_5xx first_byte_timeout health_check_interval
            health_check_path health_check_timeout max_ejection_percent per_try_timeout
            retriable_status_codes retry_after_max retry_back_off_base retry_back_off_max
            retry_budget_min_concurrency retry_budget_percent retry_count retry_on""",
        "Routing": """
            candidate_requirements data_policy fallback graphs model_bindings projections""",
        "ModelCard": "loras",
        "Signals": """
            classifiers complexity conversation domains embeddings events fact_check hallucination
            input_modality jailbreak kb language metadata modality pii preferences reasks
            role_bindings safety structure user_feedbacks""",
        "KeywordRule": "bm25_threshold fuzzy_match fuzzy_threshold ngram_arity ngram_threshold",
        "ContextRule": "",
        "RuleNode": "label on_error on_unknown predicate",
        "Decision": """
            action adaptations candidateIterations emits fallback output_contract
            output_contract_spec plugins reliability""",
        "ModelRef": "lora_name reasoning_description reasoning_effort reasoning_mode",
        "Algorithm": """
            automix budget confidence fusion graph hybrid latency_aware minimum_candidates
            multi_factor on_error params prompt ratings remom router_dc workflows""",
        "Global": "integrations model_catalog services stores",
        "RouterSettings": "fallback learning model_selection skip_processing streamed_body",
    }.items()
}
"""By class of `document`, keys that are refused with a plain word instead of as unknown."""

NOT_SERVED_VALUES: Mapping[str, frozenset[str]] = {
    field: frozenset(values.split())
    for field, values in {
        "ProviderModel.api_format": "anthropic responses",
        "Reliability.lb_policy": "least_request",
        "KeywordRule.method": "bm25 ngram",
        "RuleNode.type": """
            authz classifier complexity conversation domain embedding event fact_check
            input_modality jailbreak kb language metadata modality pii preference projection reask
            safety structure user_feedback""",
        "Algorithm.type": """
            automix confidence fusion graph hybrid kmeans knn latency_aware mlp multi_factor prompt
            ratings remom router_dc svm workflows""",
        "RouterSettings.config_source": "kubernetes",
    }.items()
}
"""By field, words of a closed set."""

RENAMED_KEYS: Mapping[str, Mapping[str, str]] = {
    "BackendRef": {"type": "provider"},
    "ProviderDefaults": {
        "default_model": "model",
        "default_reasoning_effort": "reasoning_effort",
    },
    "ProviderModel": {"reasoning_family": "reasoning"},
    "Routing": {"models": "modelCards"},
}
"""By class, keys of the layouts before v0.3 and what became of them."""
