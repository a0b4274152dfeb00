"""Blocks of the databases behind stores, as far as the response cache and others share them."""

from typing import Annotated

from vsr.config.document.objects import SECRET, DocumentObject


class BackendTls(DocumentObject, frozen=True):
    """`connection.tls`."""

    enabled: bool = False
    cert_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None


class VectorField(DocumentObject, frozen=True):
    """`vector_field`."""

    name: str | None = None
    dimension: int | None = None
    metric_type: str | None = None


class HnswParams(DocumentObject, frozen=True):
    """`params` of an index."""

    M: int | None = None
    efConstruction: int | None = None  # noqa: N815  # the document's spelling


class BackendLogging(DocumentObject, frozen=True):
    """`logging`."""

    level: str | None = None


class RedisConnection(DocumentObject, frozen=True):
    """`connection` of Redis and Valkey."""

    host: str | None = None
    port: int | None = None
    database: int | None = None
    password: Annotated[str | None, SECRET] = None
    timeout: int | None = None
    tls: BackendTls | None = None


class RedisIndex(DocumentObject, frozen=True):
    """`index` of Redis and Valkey."""

    name: str | None = None
    prefix: str | None = None
    vector_field: VectorField | None = None
    index_type: str | None = None
    params: HnswParams | None = None


class RedisSearch(DocumentObject, frozen=True):
    """`search` of Redis and Valkey."""

    topk: int | None = None


class RedisDevelopment(DocumentObject, frozen=True):
    """`development` of Redis and Valkey."""

    drop_index_on_startup: bool = False
    auto_create_index: bool = False


class RedisConfig(DocumentObject, frozen=True):
    """A Redis that keeps vectors."""

    connection: RedisConnection | None = None
    index: RedisIndex | None = None
    search: RedisSearch | None = None
    development: RedisDevelopment | None = None
    logging: BackendLogging | None = None


class ValkeyConfig(DocumentObject, frozen=True):
    """A Valkey that keeps vectors."""

    connection: RedisConnection | None = None
    index: RedisIndex | None = None
    search: RedisSearch | None = None
    development: RedisDevelopment | None = None
    logging: BackendLogging | None = None


class MilvusAuth(DocumentObject, frozen=True):
    """`connection.auth` of Milvus."""

    enabled: bool = False
    username: str | None = None
    password: Annotated[str | None, SECRET] = None


class MilvusConnection(DocumentObject, frozen=True):
    """`connection` of Milvus."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    timeout: int | None = None
    auth: MilvusAuth | None = None
    tls: BackendTls | None = None


class MilvusIndex(DocumentObject, frozen=True):
    """`collection.index` of Milvus."""

    type: str | None = None
    params: HnswParams | None = None


class MilvusCollection(DocumentObject, frozen=True):
    """`collection` of Milvus."""

    name: str | None = None
    description: str | None = None
    vector_field: VectorField | None = None
    index: MilvusIndex | None = None


class MilvusSearchParams(DocumentObject, frozen=True):
    """`search.params` of Milvus."""

    ef: int | None = None


class MilvusSearch(DocumentObject, frozen=True):
    """`search` of Milvus."""

    params: MilvusSearchParams | None = None
    topk: int | None = None
    consistency_level: str | None = None


class MilvusDevelopment(DocumentObject, frozen=True):
    """`development` of Milvus."""

    drop_collection_on_startup: bool = False
    auto_create_collection: bool = False


class MilvusConfig(DocumentObject, frozen=True):
    """A Milvus."""

    connection: MilvusConnection | None = None
    collection: MilvusCollection | None = None
    search: MilvusSearch | None = None
    logging: BackendLogging | None = None
    development: MilvusDevelopment | None = None


class QdrantConfig(DocumentObject, frozen=True):
    """A Qdrant."""

    host: str | None = None
    port: int | None = None
    api_key: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    connect_timeout: int | None = None
    collection_name: str | None = None
