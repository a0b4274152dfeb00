// A run on a line of time: a row for each step and call, a bar for each attempt.

import { h } from "./dom.js";
import { duration, words } from "./format.js";
import { pill } from "./parts.js";
import { endOf, inTreeOrder, label, ticks } from "./run.js";

const SPAN = 1000;

/** Return the rows of a graph's run. */
export function graphTimeline(graph, nowMs) {
  const end = endOf(graph, nowMs);
  const calls = new Map();
  for (const call of graph.calls) calls.set(call.step, [...(calls.get(call.step) ?? []), call]);
  const rows = [];
  for (const step of inTreeOrder(graph.steps)) {
    const own = calls.get(step.path) ?? [];
    calls.delete(step.path);
    rows.push(own.length ? own.map((call, at) => callRow(call, end, nowMs, at ? null : step)) : stepRow(step, end, nowMs));
  }
  for (const rest of calls.values()) rows.push(rest.map((call) => callRow(call, end, nowMs, null)));
  const dropped = graph.steps_dropped + graph.calls_dropped;
  return [chart(rows, end, "Step"), dropped ? h("p", { class: "quiet" }, `${dropped} more are not kept.`) : null];
}

/** Return the rows of the attempts of a plain request. */
export function attemptTimeline(attempts, endMs) {
  const end = Math.max(endMs, 1);
  const rows = attempts.map((each, at) =>
    row(`${at}`, 0, each.endpoint, each.model, each.state, end, [bar(each, end, endMs)], each.started_ms, each.ended_ms ?? endMs, why(each)),
  );
  return chart(rows, end, "Endpoint");
}

function stepRow(step, end, nowMs) {
  const { depth, name, number } = label(step.path);
  const kind = step.type === "call" ? step.state : `group ${step.state}`;
  return row(step.path, depth, `${number} ${name}`.trim(), step.type, step.state, end, [rect(step.started_ms, step.ended_ms ?? nowMs, kind, end)], step.started_ms, step.ended_ms ?? nowMs, words(step.error));
}

function callRow(call, end, nowMs, step) {
  const { depth, name, number } = label(call.step);
  const until = call.ended_ms ?? nowMs;
  const bars = [rect(call.started_ms, until, "wait", end)];
  if (call.attempts.length) bars.push(...call.attempts.map((each) => bar(each, end, until)));
  else bars.push(rect(call.started_ms, until, call.state, end));
  const who = call.model ?? `verifier, ${call.verifier}`;
  const places = [...new Set(call.attempts.map((each) => each.endpoint))].join(", ");
  const told = [call.selected ? "selected" : "", call.reason ? words(call.reason) : "", words(call.error), call.attempts.length > 1 ? `${call.attempts.length} attempts` : ""];
  const key = `${call.ordinal} ${call.step}`;
  return row(key, depth, step || call.step ? `${number} ${name}`.trim() : who, places ? `${who} · ${places}` : who, call.state, end, bars, call.started_ms, until, [...new Set(told.filter(Boolean))].join(", "));
}

function why(attempt) {
  const timeout = attempt.timeout ? ` (${words(attempt.timeout)})` : "";
  const status = attempt.status === null ? "" : `status ${attempt.status}`;
  return [status, attempt.error ? words(attempt.error) + timeout : ""].filter(Boolean).join(", ");
}

function bar(attempt, end, until) {
  return rect(attempt.started_ms, attempt.ended_ms ?? until, attempt.state, end);
}

function rect(from, to, kind, end) {
  const isThin = kind === "wait" || kind.startsWith("group");
  const x = (SPAN * from) / end;
  const width = Math.max((SPAN * (to - from)) / end, 3);
  return h("rect", { class: `span ${kind}`, x: x.toFixed(1), y: isThin ? 7 : 4.5, width: width.toFixed(1), height: isThin ? 2 : 7 });
}

function row(key, depth, name, who, state, end, bars, from, to, note) {
  return h(
    "tr",
    { key, role: "row" },
    h("th", { scope: "row", role: "rowheader", class: `step depth-${Math.min(depth, 6)}` }, h("span", { class: "mono" }, name), h("span", { class: "who" }, who)),
    h(
      "td",
      { role: "cell", class: "chart" },
      h(
        "svg",
        { viewBox: `0 0 ${SPAN} 16`, preserveAspectRatio: "none", role: "img", "aria-label": `from ${duration(from)} to ${duration(to)}` },
        ticks(end).map((at) => h("path", { class: "grid", d: `M${((SPAN * at) / end).toFixed(1)} 0V16` })),
        bars,
      ),
    ),
    h("td", { role: "cell", class: "number took" }, duration(to - from)),
    h("td", { role: "cell", class: "end" }, pill(state), note ? h("span", { class: "note" }, note) : null),
  );
}

function chart(rows, end, first) {
  const marks = ticks(end);
  return h(
    "table",
    { class: "timeline", role: "table", "aria-label": "Timeline" },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        h("th", { scope: "col", role: "columnheader" }, first),
        h(
          "th",
          { scope: "col", role: "columnheader", class: "chart" },
          h("span", { class: "hidden" }, "Time"),
          h("span", { class: "axis", "aria-hidden": "true" }, marks.map((at, index) => h("span", { key: String(index) }, duration(at)))),
        ),
        h("th", { scope: "col", role: "columnheader", class: "number" }, "Took"),
        h("th", { scope: "col", role: "columnheader" }, "End"),
      ),
    ),
    h("tbody", { role: "rowgroup" }, rows),
  );
}
