"""Where our document goes beyond the canonical schema of version 0.4.0, in one place.

By definition of the schema; the root is the empty name. All but the last table are keys and words
that the reference's standalone mode documents, or that our design adds.
"""

from collections.abc import Mapping

ADDED_DEFINITIONS = frozenset(
    {
        "AlgorithmBudget",
        "BackendRefTls",
        "DecisionReliability",
        "EgressPolicy",
        "FallbackOverride",
        "Graph",
        "GraphLimits",
        "GraphParam",
        "GraphStream",
        "LastResort",
        "ListenerIdentity",
        "ListenerSystemOne",
        "ListenerTls",
        "Setup",
    }
)

ADDED_KEYS: Mapping[str, frozenset[str]] = {
    name: frozenset(keys.split())
    for name, keys in {
        # The workspace mark, which the reference's command line reads and takes out.
        "": "setup",
        # The budget is the reference's; graphs are ours.
        "AlgorithmConfig": "budget graph params stream",
        # Ours.
        "CanonicalBackendRef": "api_format health_check_path http_version tls",
        "CanonicalRouterGlobal": "egress",
        # Ours, like `reliability` of recipes.
        "CanonicalEntrypoint": "reliability",
        "CanonicalRecipeRouting": "graphs reliability",
        "CanonicalRouting": "graphs reliability",
        "Decision": "fallback reliability",
        # Ours.
        "FallbackPolicy": "last_resort triggers",
        # The last two are ours; the reference's proxy has them as constants.
        "Listener": "identity models systemone tls max_body_bytes max_connections",
        # Ours.
        "ManagementAPIConfig": "tls",
        # The last row is ours.
        "ProviderReliability": """
            connect_timeout first_byte_timeout idle_timeout per_try_timeout total_timeout
            retriable_status_codes retry_after_max retry_back_off_base retry_back_off_max
            retry_budget_min_concurrency retry_budget_percent
            max_connections max_pending max_requests max_retries replay_bytes retry_evidence""",
    }.items()
}

ADDED_WORDS: Mapping[str, frozenset[str]] = {
    "AlgorithmConfig.type": frozenset({"graph"}),
    "ProviderReliability.lb_policy": frozenset({"p2c_ewma"}),
}
"""By property with a closed set of words."""

WIDENED = frozenset({"ContextRule.max_tokens", "ContextRule.min_tokens"})
"""Properties that take a number too, where the schema only has text."""
