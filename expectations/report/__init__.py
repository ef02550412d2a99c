"""The report: one page that says how a run of a flow went, from facts that the jobs read in the tables.

`render(facts)` is a pure function from `ReportFacts` to HTML: no clock, no table, no network. The page loads nothing
from elsewhere, so it can be mailed, archived or opened years later and still shows what it showed.
"""

from expectations.report.buffers import BufferFacts, RegionFacts
from expectations.report.facts import (
    Account,
    Broken,
    Certificate,
    CertificateRow,
    CommitFacts,
    DataDocs,
    Difference,
    EpochFacts,
    ExpectationFacts,
    Picture,
    ReportError,
    ReportFacts,
    SourceFacts,
    StreamFacts,
    Way,
)
from expectations.report.legs import LegFacts, QueueFacts, WaitFacts
from expectations.report.memory import Memory, PastVerdict, VerdictChanges, VerdictOutcome, VerdictStanding, changes
from expectations.report.page import Around, Kept, render
from expectations.report.presence import KeyPresence, KeysPresence, PresenceTable, SourcePresence

__all__ = [
    "Account",
    "Around",
    "Broken",
    "BufferFacts",
    "Certificate",
    "CertificateRow",
    "CommitFacts",
    "DataDocs",
    "Difference",
    "EpochFacts",
    "ExpectationFacts",
    "Kept",
    "KeyPresence",
    "KeysPresence",
    "LegFacts",
    "Memory",
    "PastVerdict",
    "Picture",
    "PresenceTable",
    "QueueFacts",
    "RegionFacts",
    "ReportError",
    "ReportFacts",
    "SourceFacts",
    "SourcePresence",
    "StreamFacts",
    "VerdictChanges",
    "VerdictOutcome",
    "VerdictStanding",
    "WaitFacts",
    "Way",
    "changes",
    "render",
]
