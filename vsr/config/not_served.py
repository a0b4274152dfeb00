"""What the canonical document may say and this version would have to ignore when it serves.

A key or word leaves these tables when its feature arrives; nothing else has to change. What only
describes things that nothing acts on (model cards, evaluation, the model catalog) is not here.
"""

from collections.abc import Mapping

NOT_SERVED_KEYS: Mapping[str, frozenset[str]] = {
    cls: frozenset(keys.split())
    for cls, keys in {
        "Document": "setup",
        "Listener": "models systemone",
        "ProviderModel": "catalog",
        "RecipeRouting": "candidate_requirements projections",
        "Signals": """
            classifiers complexity conversation domains embeddings events fact_check hallucination
            input_modality jailbreak kb language metadata modality pii preferences reasks
            role_bindings safety structure user_feedbacks""",
        "KeywordRule": "fuzzy_match",
        "RuleNode": "predicate",
        "Decision": "action adaptations emits",
        "Integrations": "tools",
        "ObservabilityConfig": "metrics profiling",
        "RouterSettings": "learning streamed_body",
        "Services": """
            api ratelimit response_api router_replay startup_status""",
        "Stores": "memory response_cache vector_store",
    }.items()
}
"""By class of the document."""

NOT_SERVED_VALUES: Mapping[str, frozenset[str]] = {
    field: frozenset(values.split())
    for field, values in {
        "BackendRef.api_format": "responses",
        "ProviderModel.api_format": "responses",
        "KeywordRule.method": "bm25 ngram",
        "RuleNode.type": """
            authz classifier complexity conversation domain embedding event fact_check
            input_modality jailbreak kb language metadata modality pii preference projection reask
            safety structure user_feedback""",
        "Algorithm.type": """
            automix hybrid kmeans knn latency_aware mlp multi_factor prompt router_dc svm""",
        "DecisionPlugin.type": """
            context_compression hallucination memory prompt_cache rag response_cache
            response_jailbreak router_replay shadow_dispatch tool_selection tools""",
        "WorkflowStateRuntimeConfig.store_backend": "redis",
        "RouterSettings.config_source": "kubernetes",
        "RouterSettings.clear_route_cache": "false",
    }.items()
}
"""By field, words that are not served."""

STANDALONE_ONLY: Mapping[str, frozenset[str]] = {
    cls: frozenset(keys.split())
    for cls, keys in {
        "Algorithm": "stream",
        "BackendRef": "health_check_path http_version tls",
        "DecisionReliability": """
            first_byte_timeout idle_timeout retry_after_max retry_back_off_base
            retry_back_off_max""",
        "Graph": "stream",
        "Listener": "models tls",
        "LooperConfig": "flow fusion remom",
        "Reliability": """
            first_byte_timeout max_connections max_pending max_requests max_retries replay_bytes
            retry_evidence""",
        "RouterSettings": "egress",
    }.items()
}
"""By class, keys that an Envoy in front does not honour."""

STANDALONE_ONLY_VALUES: Mapping[str, frozenset[str]] = {
    "Algorithm.type": frozenset({"confidence", "fusion", "graph", "ratings", "remom", "workflows"}),
}
"""By field, words that an Envoy in front does not honour."""
