"""The dashboard shows what the server tells: every metric, and none that is not there."""

import asyncio
import json
import re
from collections.abc import Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families

from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from tests.docs.blocks import REPOSITORY
from tests.server.stage import bearer, served
from tests.support.fleet import Fleet

DASHBOARD = REPOSITORY / "packaging" / "grafana-dashboard.json"
METRIC = re.compile(r"\b(?:agent_console|process)_\w+")
LABELS = re.compile(r"(?:by \(|{)(.*?)[)}]")


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def labels(expression: str) -> Iterator[str]:
    for group in LABELS.findall(expression):
        yield from re.findall(r"(\w+)(?:=|,|$)", re.sub(r'"[^"]*"', "", group))


async def told(fleet: Fleet) -> dict[str, set[str]]:
    """The samples that a server tells once it has done its duties, each with its labels."""
    whole = "agent_console_duty_rounds_total"
    reader = bearer(fleet.token("vera@example.com"))
    async with (
        asyncio.timeout(60),
        served(build_app(Backend(fleet.working))) as url,
        httpx.AsyncClient(base_url=url, headers=reader) as client,
    ):
        text = ""
        while whole not in text:
            text = (await client.get("/metrics")).text
    families = text_string_to_metric_families(text)
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


async def test_the_dashboard_and_the_metrics_know_each_other(fleet: Fleet) -> None:
    samples = await told(fleet)

    asked = {name for expression in expressions() for name in METRIC.findall(expression)}

    assert asked == set(samples)
    for expression in expressions():
        known = set().union(*(samples[name] for name in METRIC.findall(expression)))
        assert set(labels(expression)) <= known, expression
