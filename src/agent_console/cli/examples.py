"""Command lines to copy, for commands whose options don't say it all. A test sees that each would be taken."""

from collections.abc import Mapping

_AGENT, _JOB, _THREAD = (f"{kind}_01h455vb4pex5vsknk084sn02q" for kind in ("agt", "job", "thr"))
_CONNECTOR, _APPROVAL, _RUN, _USER = (
    f"{kind}_01h455vb4pex5vsknk084sn02q" for kind in ("con", "apr", "run", "usr")
)

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "serve": ("serve", "serve --host 0.0.0.0 --tls-cert server.pem --tls-key server.key"),
    "doctor": ("doctor", "doctor -o json"),
    "db migrate": ("--dsn postgresql://admin@db.example.com/agents db migrate --dry-run",),
    "db add-team": (
        "--dsn postgresql://admin@db.example.com/agents db add-team payments --admin ana@example.com",
    ),
    "agent register": ("agent register --url https://console.example.com --token - --name counter",),
    "agent run": (
        "agent run --url https://console.example.com -- ./count_files.sh",
        "agent run --concurrency 4 --type report --type digest -- python3 report.py",
    ),
    "agents configure": (f"""agents configure {_AGENT} --profile '{{"rack": "b7"}}'""",),
    "agents import": (f"""agents import {_AGENT} --name beacon --profile '{{"rack": "b7"}}'""",),
    "agents list": ("agents list --filter 'status:online host:h1'",),
    "agents register": ("agents register --token art_key_… --nonce 8f3a0c5d9e7b1a24 --name counter",),
    "agents drain": (f"agents drain {_AGENT} --reason 'disk swap'", f"agents resume {_AGENT}"),
    "queue pause": ("queue pause --mode drain --reason 'database upgrade'", "queue resume"),
    "registration-tokens mint": ("registration-tokens mint --name counter --hours 1",),
    "operator-tokens mint": (f"operator-tokens mint --user {_USER} --name laptop --days 30",),
    "users create": ("users create --email mia@example.com --full-name Mia --role operator",),
    "settings set": ("settings list", "settings set job_history_days --value 30"),
    "jobs list": ("jobs list --filter 'status:dead_letter age:>1h'", "jobs list --status queued -o ids"),
    "jobs create": (
        """jobs create --type report --payload '{"month": "2026-10"}' --required-capabilities tool:report""",
        "jobs create --type report --payload @october.json -o ids",
    ),
    "jobs create-many": ("""jobs create-many --jobs '[{"type": "report", "payload": {"month": "2026-10"}}]'""",),
    "jobs cancel-many": ("jobs cancel-many --filter 'type:crawl age:>1d' --dry-run",),
    "jobs retry-many": ("jobs retry-many --status dead_letter --dry-run",),
    "jobs log": (
        f"""jobs log {_JOB} --attempt 1 --events '[{{"level": "warn", "message": "disk is nearly full"}}]'""",
    ),
    "jobs complete": (
        f"""jobs complete {_JOB} --attempt 1 --result '{{"files": 7}}' --result-summary '7 files'""",
        f"""jobs complete {_JOB} --attempt 1 --claim-next '{{"auto_start": true}}'""",
    ),
    "jobs fail": (f"jobs fail {_JOB} --attempt 1 --error 'no space left' --retryable",),
    "jobs acknowledge": (f"jobs acknowledge {_JOB} --attempt 1",),
    "connectors create": (
        """connectors create --name archive --type s3 --config '{"bucket": "old"}' --credentials @archive.json""",
    ),
    "connectors update": (f"""connectors update {_CONNECTOR} --config '{{"bucket": "archive-2"}}'""",),
    "connectors set-credentials": (f"connectors set-credentials {_CONNECTOR} --credentials @archive.json",),
    "connectors move": (f"connectors move {_CONNECTOR} --to server --credentials @archive.json",),
    "heartbeat send": ("""heartbeat send --metrics '{"cpu": 0.31, "memory": 0.54}'""",),
    "messages post": (f"messages post {_THREAD} --content 'Plan the launch.' --to {_AGENT}",),
    "runs delegate": (f"runs delegate --to {_AGENT} --thread {_THREAD} --input 'Read this again.'",),
    "threads grant": (f"threads grant {_THREAD} --agent {_AGENT} --can-write",),
    "runs trace": (f"runs trace --run {_RUN}",),
    "routes put": (
        "routes put --from-agent atlas --to-agent beacon --policy allowed --reason 'nightly reports'",
        "routes put --from-agent atlas --to-agent beacon --policy blocked --base-version 1",
    ),
    "routes explain": ("routes explain --from-agent atlas --to-agent beacon",),
    "routes replay": (
        """routes replay --routes '[{"from_agent": "atlas", "to_agent": "beacon", "policy": "blocked"}]'""",
    ),
    "routes apply": ("routes apply policy.yaml --dry-run", "routes apply policy.yaml --reason 'review 12'"),
    "collections create": (
        f"collections create --name photos --type local --location /srv/photos --bound-agent {_AGENT}",
        f"collections create --name archive --type s3 --connector {_CONNECTOR} --refresh-interval-hours 24",
    ),
    "approvals approve": (f"approvals approve {_APPROVAL} --digest-seen {'86d84994' * 8}",),
    "audit list": ("audit list --action job. --since 2026-11-01T00:00:00Z",),
    "audit tail": ("audit tail --follow --decision block",),
    "audit export": ("audit export --format csv --file trail.csv",),
    "audit verify": ("audit seal -o json > kept.seal", "audit verify --seal @kept.seal"),
}


def epilog(command: str) -> str | None:
    """What stands below the options of this command's help. The mark in front keeps the lines as they are."""
    lines = EXAMPLES.get(command)
    return (
        None if lines is None else "\b\n" + "\n".join(["Such as:", *(f"  agent-console {line}" for line in lines)])
    )
