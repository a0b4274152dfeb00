"""`global.stores`: response cache, memory and vector store. Defaults are the reference's."""

from typing import Annotated, Literal

from vsr.config.document.kinds import Bounds, Count, Fraction
from vsr.config.document.objects import SECRET, DocumentObject
from vsr.config.document.plugins import MemoryReflectionConfig
from vsr.config.document.store_backends import MilvusConfig, QdrantConfig, RedisConfig, ValkeyConfig


class PolarityGuardNLIConfig(DocumentObject, frozen=True):
    """`polarity_guard.nli`."""

    contradiction_threshold: Fraction | None = None


class PolarityGuardConfig(DocumentObject, frozen=True):
    """`global.stores.response_cache.polarity_guard`."""

    mode: str | None = None
    nli: PolarityGuardNLIConfig | None = None


class ResponseCacheStoreConfig(DocumentObject, frozen=True):
    """`global.stores.response_cache`."""

    backend_type: Literal["memory", "redis", "valkey", "milvus", "qdrant"] = "memory"
    enabled: bool = True
    similarity_threshold: Fraction | None = None
    max_entries: Count = 1_000
    ttl_seconds: Count = 3_600
    eviction_policy: str = "fifo"
    redis: RedisConfig | None = None
    valkey: ValkeyConfig | None = None
    milvus: MilvusConfig | None = None
    qdrant: QdrantConfig | None = None
    embedding_model: str | None = None
    polarity_guard: PolarityGuardConfig | None = None


class MemoryMilvusConfig(DocumentObject, frozen=True):
    """`memory.milvus`."""

    address: str | None = None
    collection: str = "agentic_memory"
    dimension: int = 384
    num_partitions: int | None = None


class MemoryValkeyConfig(DocumentObject, frozen=True):
    """`memory.valkey`."""

    host: str | None = None
    port: int | None = None
    database: int | None = None
    password: Annotated[str | None, SECRET] = None
    timeout: int | None = None
    collection_prefix: str | None = None
    index_name: str | None = None
    dimension: int | None = None
    metric_type: str | None = None
    index_m: int | None = None
    index_ef_construction: int | None = None
    tls_enabled: bool = False
    tls_ca_path: str | None = None
    tls_insecure_skip_verify: bool = False


class MemoryQdrantConfig(DocumentObject, frozen=True):
    """`memory.qdrant`."""

    host: str | None = None
    port: int | None = None
    api_key: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    connect_timeout: int | None = None
    collection: str | None = None
    dimension: int | None = None


class MemoryRedisCacheConfig(DocumentObject, frozen=True):
    """`memory.redis_cache`."""

    enabled: bool = False
    address: str | None = None
    ttl_seconds: int | None = None
    db: int | None = None
    key_prefix: str | None = None
    password: Annotated[str | None, SECRET] = None


class MemoryPersistenceConfig(DocumentObject, frozen=True):
    """`global.stores.memory.persistence`."""

    timeout_seconds: Annotated[int, Bounds(0, 9_223_372_036)] | None = None
    concurrency: Annotated[int, Bounds(0, 64)] | None = None
    queue: Annotated[int, Bounds(0, 1_024)] | None = None
    shutdown_grace_seconds: Annotated[int, Bounds(0, 9_223_372_036)] | None = None


class MemoryConfig(DocumentObject, frozen=True):
    """`global.stores.memory`."""

    enabled: bool = False
    backend: str | None = None
    auto_store: bool = False
    disabled_routes: tuple[str, ...] = ()
    disabled_models: tuple[str, ...] = ()
    milvus: MemoryMilvusConfig | None = None
    valkey: MemoryValkeyConfig | None = None
    qdrant: MemoryQdrantConfig | None = None
    redis_cache: MemoryRedisCacheConfig | None = None
    embedding_model: str | None = None
    default_retrieval_limit: Count = 5
    default_similarity_threshold: Fraction = 0.7
    hybrid_search: bool | None = None
    hybrid_mode: str | None = None
    adaptive_threshold: bool | None = None
    reflection: MemoryReflectionConfig | None = None
    persistence: MemoryPersistenceConfig | None = None


class VectorStoreMemoryConfig(DocumentObject, frozen=True):
    """`vector_store.memory`."""

    max_entries_per_store: int | None = None


class LlamaStackVectorStoreConfig(DocumentObject, frozen=True):
    """`vector_store.llama_stack`."""

    endpoint: str | None = None
    auth_token: Annotated[str | None, SECRET] = None
    embedding_model: str | None = None
    request_timeout_seconds: int | None = None
    search_type: str | None = None


class ValkeyVectorStoreConfig(DocumentObject, frozen=True):
    """`vector_store.valkey`."""

    host: str | None = None
    port: int | None = None
    database: int | None = None
    password: Annotated[str | None, SECRET] = None
    connect_timeout: int | None = None
    collection_prefix: str | None = None
    metric_type: str | None = None
    index_m: int | None = None
    index_ef_construction: int | None = None


class QdrantVectorStoreConfig(DocumentObject, frozen=True):
    """`vector_store.qdrant`."""

    host: str | None = None
    port: int | None = None
    api_key: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    connect_timeout: int | None = None
    collection_prefix: str | None = None


class VectorStoreMetadataPostgresConfig(DocumentObject, frozen=True):
    """`vector_store.metadata_postgres`."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    user: str | None = None
    password: Annotated[str | None, SECRET] = None
    ssl_mode: str | None = None
    max_open_conns: int | None = None
    max_idle_conns: int | None = None
    conn_max_lifetime: int | None = None
    table_name: str | None = None


class VectorStoreConfig(DocumentObject, frozen=True):
    """`global.stores.vector_store`; off unless it is there."""

    enabled: bool = False
    backend_type: Literal["memory", "milvus", "llama_stack", "valkey", "qdrant"] | None = None
    file_storage_dir: str = "/var/lib/vsr/data"
    max_file_size_mb: Count = 50
    embedding_model: str = "bert"
    embedding_dimension: Count | None = None
    ingestion_workers: Count = 2
    ingestion_drain_timeout_seconds: Count = 30
    supported_formats: tuple[str, ...] = (".txt", ".md", ".json", ".csv", ".html")
    milvus: MilvusConfig | None = None
    memory: VectorStoreMemoryConfig | None = None
    llama_stack: LlamaStackVectorStoreConfig | None = None
    valkey: ValkeyVectorStoreConfig | None = None
    qdrant: QdrantVectorStoreConfig | None = None
    metadata_store: Literal["memory", "postgres"] = "memory"
    metadata_postgres: VectorStoreMetadataPostgresConfig | None = None


class Stores(DocumentObject, frozen=True):
    """`global.stores`."""

    response_cache: ResponseCacheStoreConfig | None = None
    memory: MemoryConfig | None = None
    vector_store: VectorStoreConfig | None = None
