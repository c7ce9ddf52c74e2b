"""What all requests of a worker share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from aiohttp import ClientSession

    from turngate.gate import Gate
    from turngate.proxy.chain.engine import Engine
    from turngate.proxy.metrics import Metrics
    from turngate.proxy.routes import Routes
    from turngate.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """Made once a worker, and given to every request."""

    settings: Settings
    """All settings."""
    routes: Routes
    """Which upstream a request belongs to."""
    http: ClientSession
    """The client that all upstreams are asked with."""
    executor: ThreadPoolExecutor
    """Where the store is waited for, so that the event loop is not."""
    gate: Gate
    """Originals."""
    engine: Engine
    """What is sent."""
    metrics: Metrics
    """What is counted."""
