"""Texts that a cluster, an alert or a model may send, and that must be shown and do nothing."""

from __future__ import annotations

MARK = "window.__owned = true"
SCRIPT = f"<script>{MARK}</script>"
PICTURE = f'<img src=x onerror="{MARK}">'
TITLE = f"{SCRIPT}{PICTURE}\"'><b>bold 🔥 \u202egnp.exe\u202c مرحبا"
SEVERITY = 'critical" onmouseover="window.__owned = true'
CAUSE = f"{PICTURE} {'long' * 200} [[0123456789ab:1-2]]"
LABELS = {
    "alertname": SCRIPT,
    "severity": SEVERITY,
    "link": "javascript:window.__owned=true",
    "site": "https://example.com/?a=1&b=<2>",
    "x" * 300: "y" * 3_000,
}
ANSWER = f"""{SCRIPT} {PICTURE} <iframe src="https://evil.example"></iframe>

[a](javascript:window.__owned=true) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](//evil.example/p) \
[e](https://evil.example/) ![tracker](https://evil.example/x.png) <javascript:alert(1)>

<style>body {{ display: none }}</style>

[f](https://h.example/[[RESULT:1]]"onmouseover="window.__owned=true)

{"unbroken" * 400}

| {"a" * 300} | b | c | d | e | f | g |
|---|---|---|---|---|---|---|
| 1 | 2 | 3 | 4 | 5 | {"wide" * 100} | 7 |

```
{"code " * 200}
```

مرحبا بالعالم 👩‍🚒 [[RESULT:2]] [[RESULT:2-99]] [[deadbeefdead:1]]
"""
OUTPUT = "\n".join(
    [
        SCRIPT,
        f"{PICTURE} \x1b[31mred\x1b[0m \x00 \x07 \u202egnp.exe\u202c",
        "</td></tr></table></main>" + PICTURE,
        "z" * 100_000,
        "مرحبا 🔥",
    ]
)
RAW_EVENTS = (
    ("notice", '{"text": "half \\ud83d a character"}'),
    ("notice", "not JSON"),
    ("notice", "[" * 5_000),
    ("tool_calling_result", '{"result": 5}'),
    ("tool_calling_result", '{"tool_call_id": 7, "result": {"elapsed_seconds": "x", "stored": [1, {"id": "../x"}]}}'),
    ("token_count", '{"metadata": {"tokens": "many", "max_tokens": -4, "costs": []}}'),
    ("token_count", '{"metadata": {"tokens": {"total_tokens": 1e999}, "max_tokens": 1e999}}'),
    ("start_tool_calling", '{"id": "\\"><script>window.__owned = true</script>", "tool_name": null}'),
    ("approval_required", '{"pending_approvals": [1, {"description": "<b>x</b>"}]}'),
    ("a_name_of_tomorrow", "{}"),
)
