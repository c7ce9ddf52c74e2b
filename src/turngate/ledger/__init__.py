"""What was sent, and the proof that it stays as it was sent."""

from turngate.ledger.book import Ledger, Prepared
from turngate.ledger.canonical import child_key, digest, root_key
from turngate.ledger.footprint import BEFORE_MESSAGES, REASONS, Break, Footprint, Reason, Step, verify
from turngate.ledger.memory import Memory
from turngate.ledger.policy import Addition, Attend, Decide, Occasion, Policy

__all__ = [
    "BEFORE_MESSAGES",
    "REASONS",
    "Addition",
    "Attend",
    "Break",
    "Decide",
    "Footprint",
    "Ledger",
    "Memory",
    "Occasion",
    "Policy",
    "Prepared",
    "Reason",
    "Step",
    "child_key",
    "digest",
    "root_key",
    "verify",
]
