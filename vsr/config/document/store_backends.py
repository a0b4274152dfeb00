"""Blocks of the databases behind stores, as far as the response cache and others share them."""

import attrs

from vsr.config.document.kinds import SECRET


@attrs.frozen(repr=False, unsafe_hash=False)
class BackendTls:
    """`connection.tls`."""

    enabled: bool = False
    cert_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class VectorField:
    """`vector_field`."""

    name: str | None = None
    dimension: int | None = None
    metric_type: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class HnswParams:
    """`params` of an index."""

    M: int | None = None
    efConstruction: int | None = None  # noqa: N815  # the document's spelling


@attrs.frozen(repr=False, unsafe_hash=False)
class BackendLogging:
    """`logging`."""

    level: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RedisConnection:
    """`connection` of Redis and Valkey."""

    host: str | None = None
    port: int | None = None
    database: int | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    timeout: int | None = None
    tls: BackendTls | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RedisIndex:
    """`index` of Redis and Valkey."""

    name: str | None = None
    prefix: str | None = None
    vector_field: VectorField | None = None
    index_type: str | None = None
    params: HnswParams | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RedisSearch:
    """`search` of Redis and Valkey."""

    topk: int | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RedisDevelopment:
    """`development` of Redis and Valkey."""

    drop_index_on_startup: bool = False
    auto_create_index: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class RedisConfig:
    """A Redis that keeps vectors."""

    connection: RedisConnection | None = None
    index: RedisIndex | None = None
    search: RedisSearch | None = None
    development: RedisDevelopment | None = None
    logging: BackendLogging | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ValkeyConfig:
    """A Valkey that keeps vectors."""

    connection: RedisConnection | None = None
    index: RedisIndex | None = None
    search: RedisSearch | None = None
    development: RedisDevelopment | None = None
    logging: BackendLogging | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusAuth:
    """`connection.auth` of Milvus."""

    enabled: bool = False
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusConnection:
    """`connection` of Milvus."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    timeout: int | None = None
    auth: MilvusAuth | None = None
    tls: BackendTls | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusIndex:
    """`collection.index` of Milvus."""

    type: str | None = None
    params: HnswParams | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusCollection:
    """`collection` of Milvus."""

    name: str | None = None
    description: str | None = None
    vector_field: VectorField | None = None
    index: MilvusIndex | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusSearchParams:
    """`search.params` of Milvus."""

    ef: int | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusSearch:
    """`search` of Milvus."""

    params: MilvusSearchParams | None = None
    topk: int | None = None
    consistency_level: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusDevelopment:
    """`development` of Milvus."""

    drop_collection_on_startup: bool = False
    auto_create_collection: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class MilvusConfig:
    """A Milvus."""

    connection: MilvusConnection | None = None
    collection: MilvusCollection | None = None
    search: MilvusSearch | None = None
    logging: BackendLogging | None = None
    development: MilvusDevelopment | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class QdrantConfig:
    """A Qdrant."""

    host: str | None = None
    port: int | None = None
    api_key: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    use_tls: bool = False
    connect_timeout: int | None = None
    collection_name: str | None = None
