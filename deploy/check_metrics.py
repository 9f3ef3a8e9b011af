"""Checks what promtool cannot see: the expressions of the dashboard, and what nothing looks at or tests.

check_metrics.py OUT: writes every expression of the dashboard to OUT as a recording rule, for `promtool check rules` to
parse; Grafana sends them to Prometheus unread, so a mistake shows only as an empty panel. Complains about a metric of
docs/metrics.md that is in no panel and no alert, and about an alert that no test sees fire and be silent.
"""

import json
import re
import sys
from pathlib import Path

import yaml

DASHBOARD = Path("deploy/grafana/kinora.json")
ALERTS = Path("deploy/prometheus/alerts.yaml")
TESTS = Path("deploy/prometheus/alerts_test.yaml")
# A row of the tables in docs/metrics.md.
DESCRIBED = re.compile(r"^\| `((?:kinora|process)_[a-z_]+)` \|", re.MULTILINE)
METRIC = re.compile(r"\b(?:kinora|process)_[a-z_]+?(?=_bucket\b|\b)")


def dashboard_rules() -> list[dict]:
    """The expressions of all panels."""
    return [
        {"record": f"dashboard:panel_{panel['id']}:{target['refId'].lower()}", "expr": target["expr"]}
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel["targets"]
    ]


def alert_rules() -> list[dict]:
    """The alerts of all groups."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def unwatched(expressions: list[str]) -> set[str]:
    """Metrics that are documented and in none of these expressions."""
    described = set(DESCRIBED.findall(Path("docs/metrics.md").read_text()))
    assert len(described) > 20, described
    return described - {name for text in expressions for name in METRIC.findall(text)}


def untested(alerts: list[dict]) -> list[str]:
    """Alerts that the tests do not see in both states."""
    seen = [
        (case["alertname"], bool(case.get("exp_alerts")))
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    states = {True: "fire", False: "be silent"}
    return [
        f"no test sees {alert['alert']} {state}"
        for alert in alerts
        for fires, state in states.items()
        if (alert["alert"], fires) not in seen
    ]


def main() -> int:
    rules, alerts = dashboard_rules(), alert_rules()
    names = [rule["record"] for rule in rules]
    complaints = untested(alerts)
    complaints += [f"two panels or targets are {name}" for name in sorted(set(names)) if names.count(name) > 1]
    expressions = [rule["expr"] for rule in rules + alerts]
    complaints += [f"{name} is in no panel and no alert" for name in sorted(unwatched(expressions))]
    # JSON is YAML.
    Path(sys.argv[1]).write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    print("\n".join(complaints))
    print(f"{len(rules)} expressions, {len(alerts)} alerts, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
