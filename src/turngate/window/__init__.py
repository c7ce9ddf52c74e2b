"""What happens when a conversation outgrows the window: budget, cut, compaction, honesty."""

from turngate.window.budget import Limits, Verdict, limits
from turngate.window.case import Fitted
from turngate.window.cut import Plan, Step, plan
from turngate.window.helpers import Cleared, Trimmed, clear_tool_results, trim, validate
from turngate.window.measure import Sizes
from turngate.window.memory import (
    HONESTY_MARKER_SENTINEL,
    MemoryFlusher,
    compose_memory_section,
    flush_memory,
    strip_stale_marker,
)
from turngate.window.mend import Repaired, repair
from turngate.window.models import CachePrices
from turngate.window.notices import Compaction, SummaryCall
from turngate.window.record.summary import Ask, Endpoint, Reply, Style
from turngate.window.window import Window

__all__ = [
    "HONESTY_MARKER_SENTINEL",
    "Ask",
    "CachePrices",
    "Cleared",
    "Compaction",
    "Endpoint",
    "Fitted",
    "Limits",
    "MemoryFlusher",
    "Plan",
    "Repaired",
    "Reply",
    "Sizes",
    "Step",
    "Style",
    "SummaryCall",
    "Trimmed",
    "Verdict",
    "Window",
    "clear_tool_results",
    "compose_memory_section",
    "flush_memory",
    "limits",
    "plan",
    "repair",
    "strip_stale_marker",
    "trim",
    "validate",
]
