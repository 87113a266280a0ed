"""What a trace says of its causes: exact counts, and where its orders contradict them."""

from antecede.tables.audit.engine import audit, audit_events
from antecede.tables.audit.report import AuditReport

__all__ = ["AuditReport", "audit", "audit_events"]
