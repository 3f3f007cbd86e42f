"""`holmes rules list|explain`: what `holmes scan` recognises."""

from __future__ import annotations

import click


@click.group()
def rules() -> None:
    """Show what is recognised without a model."""


@rules.command(name="list")
def list_rules() -> None:
    """List all rules."""
    # Imported here: `holmes rules --help` does not need them.
    from holmes.diagnosis.engine import all_rules

    found = all_rules()
    width = max(len(rule.id) for rule in found)
    for rule in found:
        click.echo(f"{rule.id:{width}}  {rule.row.severity:8}  {rule.row.title}")


@rules.command()
@click.argument("rule_id")
def explain(rule_id: str) -> None:
    """Explain the rule RULE_ID: what it means, what it reads, how it is told apart."""
    import textwrap

    from holmes.diagnosis.engine import chosen_rules

    for rule in chosen_rules((rule_id,)):
        row = rule.row
        click.echo(f"{row.id}  {row.title}  ({row.severity})\n")
        click.echo(textwrap.fill(row.explanation, 100))
        click.echo(f"\nJudges: {', '.join(row.kinds)}")
        if row.needs:
            click.echo(f"Needs:  {', '.join(row.needs)}")
        click.echo("Reads:")
        for field in row.reads:
            click.echo(f"  {field}")
