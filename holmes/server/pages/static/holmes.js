"use strict";
// Refreshes the page. All HTML comes from the server. Without this script, the page works but does not update.
(() => {
  const FRESH_MILLISECONDS = 15000;
  const POLL_MILLISECONDS = 10000;
  const GATHER_MILLISECONDS = 120;
  const EVENTS = [
    "message", "turn_started", "start_tool_calling", "tool_calling_result", "ai_message", "token_count", "notice",
    "conversation_history_compaction_start", "conversation_history_compacted", "approval_required", "model_switched",
    "ai_answer_end", "error", "end",
  ];

  /** Fetch the document at `address`. If the session has expired, a reload shows the login form. */
  async function fetchDocument(address) {
    const response = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (response.status === 401) location.reload();
    const text = await response.text();
    return { ok: response.ok, page: new DOMParser().parseFromString(text, "text/html") };
  }

  function announce(text) {
    document.getElementById("announce").textContent = text;
  }

  /** Replace `old` with `fresh` if they differ. Expanded details stay expanded, and the focus is kept. */
  function replace(old, fresh) {
    if (!old || !fresh || old.isEqualNode(fresh)) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const link = focused && focused.getAttribute("href");
    const wasOpen = old.querySelector(":scope > details[open]") !== null;
    old.replaceWith(fresh);
    const details = fresh.querySelector(":scope > details");
    if (details && wasOpen) details.open = true;
    if (!focused) return;
    const candidates = [...fresh.querySelectorAll("[data-row], a")];
    const again = candidates.find((each) => each.getAttribute("href") === link) || candidates[0];
    if (again) again.focus({ preventScroll: true });
  }

  // Fetch a result or cited lines when the user opens the entry.
  async function load(part) {
    const address = part.dataset.src;
    delete part.dataset.src;
    part.setAttribute("aria-busy", "true");
    part.textContent = "Loading…";
    try {
      const { ok, page } = await fetchDocument(address);
      const shown = ok ? page.body : page.querySelector("main");
      part.replaceChildren(...shown.childNodes);
      if (ok && part.nextElementSibling?.matches("[data-fallback]")) part.nextElementSibling.remove();
    } catch {
      part.textContent = "Loading failed. Close and reopen this entry to retry.";
      part.dataset.src = address;
    }
    part.removeAttribute("aria-busy");
  }

  document.addEventListener("toggle", (event) => {
    const part = event.target.open && event.target.querySelector("[data-src]");
    if (part) load(part);
  }, true);

  // A click on a citation number expands its evidence. With a modifier key, it opens the stored result like a link.
  document.addEventListener("click", (event) => {
    const cite = event.target.closest && event.target.closest("#answer a.cite");
    if (!cite || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const details = document.querySelector(`#evidence-${parseInt(cite.textContent, 10)} > details`);
    if (!details) return;
    event.preventDefault();
    details.open = true;
    details.querySelector("summary").focus({ preventScroll: true });
    details.scrollIntoView({ block: "nearest" });
  });

  // The arrow keys, j and k move the focus between rows.
  document.addEventListener("keydown", (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
    const place = rows.indexOf(document.activeElement);
    const next = place < 0 ? null : rows[place + step];
    if (place >= 0) event.preventDefault();
    if (next) next.focus();
  });

  // Refresh a list.
  async function freshen() {
    if (document.hidden) return;
    try {
      const { ok, page } = await fetchDocument(location.href);
      if (!ok) return;
      for (const old of document.querySelectorAll("[data-fresh]")) replace(old, page.getElementById(old.id));
    } catch {
      // The server is temporarily unavailable; the next refresh retries.
    }
  }

  // Follow an investigation while it runs.
  function follow(live) {
    const identity = live.dataset.live;
    let last = Number(live.dataset.last);
    let updating = false;
    let planned = 0;
    let source = null;

    function apply(updates) {
      const before = document.getElementById("answer").querySelector(".markdown");
      for (const id of ["head", "answer", "evidence", "gauges"]) {
        replace(document.getElementById(id), updates.querySelector(`#${id}`));
      }
      const steps = document.getElementById("steps");
      for (const step of updates.querySelectorAll("#steps > li")) {
        const known = document.getElementById(step.id);
        if (known) {
          replace(known, step);
        } else {
          step.classList.add("new");
          steps.append(step);
        }
        announce(step.querySelector(".what").textContent);
      }
      last = Math.max(last, Number(updates.dataset.last));
      if (!before && document.querySelector("#answer .markdown")) announce("The answer is available.");
      if ("final" in updates.dataset) end();
    }

    async function update() {
      if (updating) return plan();
      updating = true;
      try {
        const { ok, page } = await fetchDocument(`/investigations/${identity}/updates?after=${last}`);
        const updates = ok && page.getElementById("updates");
        if (updates) apply(updates);
      } catch {
        // The server is temporarily unavailable; the stream reconnects.
      }
      updating = false;
    }

    function plan() {
      if (planned) return;
      planned = setTimeout(() => { planned = 0; update(); }, GATHER_MILLISECONDS);
    }

    function end() {
      source.close();
      clearInterval(polling);
      document.getElementById("cancel")?.remove();
    }

    const polling = setInterval(() => { if (!document.hidden) update(); }, POLL_MILLISECONDS);
    source = new EventSource(`/api/investigations/${identity}/events?after=${last}`);
    for (const name of EVENTS) source.addEventListener(name, plan);
    source.addEventListener("error", plan); // also sent at the end of the stream, to show the final state
    addEventListener("pagehide", () => source.close());
  }

  const live = document.querySelector("[data-live]");
  if (live) follow(live);
  else if (document.querySelector("[data-fresh]")) setInterval(freshen, FRESH_MILLISECONDS);
})();
