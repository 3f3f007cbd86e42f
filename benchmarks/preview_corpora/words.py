"""Names, addresses and numbers that made-up output is made of. Used by every family."""

from __future__ import annotations

import random

APPS = (
    "checkout", "cart", "payments", "catalog", "search", "recommendations", "frontend", "orders", "inventory",
    "shipping", "notifications", "users", "auth-gateway", "billing", "invoices", "ledger", "geo", "media-resizer",
    "thumbnails",
    "audit", "webhooks", "scheduler", "exporter", "sessions", "pricing", "fraud-detection", "email-relay", "chat",
)  # fmt: skip
NAMESPACES = ("shop", "platform", "monitoring", "data", "kube-system", "staging", "edge", "ml")
USERS = (
    "alice",
    "bob",
    "carol",
    "dave",
    "erin",
    "frank",
    "grace",
    "heidi",
    "ivan",
    "judy",
    "mallory",
    "niaj",
    "olivia",
)
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


def random_suffix(chance: random.Random, length: int) -> str:
    return "".join(chance.choice(_SUFFIX) for _ in range(length))


def random_hex(chance: random.Random, length: int) -> str:
    return f"{chance.getrandbits(length * 4):0{length}x}"


def pod_name(chance: random.Random, app: str) -> str:
    """As a ReplicaSet names its pods."""
    return f"{app}-{random_suffix(chance, 9)}-{random_suffix(chance, 5)}"


def random_address(chance: random.Random) -> str:
    return f"10.{chance.randrange(4, 60)}.{chance.randrange(256)}.{chance.randrange(1, 255)}"
