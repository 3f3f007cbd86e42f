"""The table of the documents: every row has a test, every setting exists, and the file is up to date."""

from __future__ import annotations

from holmes.settings.config_keys import config_keys
from tests.context_rows.catalogue import ROWS
from tests.context_rows.table import ROOT, row_tests, with_table


def test_every_row_is_proved_and_every_marker_is_a_row() -> None:
    assert sorted(row_tests()) == sorted(row.id for row in ROWS)


def test_every_setting_of_a_row_exists() -> None:
    known = set(config_keys())
    unknown = {row.id: key for row in ROWS for key in row.settings if key not in known}
    assert unknown == {}


def test_the_document_has_the_table_of_today() -> None:
    document = (ROOT / "docs" / "context-management.md").read_text(encoding="utf-8")
    assert with_table(document) == document
