"""A cluster as those of its endpoints see it that are called alike."""

import attrs

from vsr.resources.cluster import Cluster, Profile


def views(cluster: Cluster) -> tuple[Cluster, ...]:
    """Return a cluster of the same name for each profile, in order: its endpoints and no others.

    A cluster whose endpoints are all called alike is its own view.
    """
    if not cluster.profiles:
        return (cluster,)
    return tuple(_view(cluster, at, profile) for at, profile in enumerate(cluster.profiles))


def called_as(cluster: Cluster, profile: Profile) -> Cluster:
    """Return `cluster` with what `profile` says of how its endpoints are called."""
    return attrs.evolve(
        cluster,
        upstream_model=profile.upstream_model,
        chat_path=profile.chat_path,
        base_path=profile.base_path,
        route_headers=profile.route_headers,
        credential=profile.credential,
        api_format=profile.api_format,
        provider=profile.provider,
        reasoning_transport=profile.reasoning_transport,
        user_keys=profile.user_keys,
    )


def _view(cluster: Cluster, at: int, profile: Profile) -> Cluster:
    own = tuple(each for each in cluster.endpoints if each.profile == at)
    return called_as(attrs.evolve(cluster, endpoints=own, profiles=()), profile)
