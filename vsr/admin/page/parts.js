// Pieces that several views show.

import { h } from "./dom.js";
import { clock, words } from "./format.js";

const KINDS = {
  running: "run",
  reading: "run",
  routing: "run",
  graph: "run",
  calling: "run",
  answering: "run",
  preparing: "run",
  succeeded: "good",
  active: "good",
  available: "good",
  closed: "good",
  serving: "good",
  failed: "bad",
  open: "bad",
  unhealthy: "bad",
  timed_out: "bad",
  ejected: "bad",
  draining: "warn",
  starting: "warn",
  cancelled: "warn",
  quarantined: "warn",
};

/** Return the tone of a state: run, good, bad, warn or still. */
export function tone(state) {
  return KINDS[state] ?? "still";
}

export function pill(state, text) {
  return h("span", { class: `pill ${tone(state)}` }, text ?? words(state));
}

export function mono(text, title) {
  return h("span", { class: "mono", title: title ?? null }, text);
}

export function time(text) {
  return h("time", { datetime: text, title: text }, clock(text));
}

export function section(title, ...children) {
  return h("section", { key: `section ${title}`, class: "card" }, h("h2", null, title), children);
}

export function facts(rows) {
  return h(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))),
  );
}

/** Return a table whose rows become blocks in a narrow window; columns are [name, class]. */
export function table(label, columns, rows, empty, kind) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  return h(
    "table",
    { role: "table", class: kind ?? null, "aria-label": label },
    h(
      "thead",
      { role: "rowgroup" },
      h("tr", { role: "row" }, columns.map(([name, kind]) => h("th", { role: "columnheader", scope: "col", class: kind ?? null }, name))),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map(({ key, cells, kind }) =>
        h(
          "tr",
          { role: "row", key, class: kind ?? null },
          cells.map((cell, at) => h("td", { role: "cell", "data-label": columns[at][0], class: columns[at][1] ?? null }, h("div", { class: "cell" }, cell))),
        ),
      ),
    ),
  );
}

/** Return a bar of `value` out of `most`; nothing without a limit. */
export function meter(value, most, label, extra = 0) {
  const width = (part) => Math.min(100, Math.max(0, (100 * part) / (most || 1)));
  return h(
    "svg",
    { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("rect", { class: "track", width: 100, height: 6 }),
    h("rect", { class: "more", width: width(value + extra), height: 6 }),
    h("rect", { class: "fill", width: width(value), height: 6 }),
  );
}

export function reasons(list) {
  return h(
    "ul",
    { class: "reasons" },
    list.map((each, at) =>
      h(
        "li",
        { key: String(at) },
        h("p", { class: "mono where" }, [each.file ? `${each.file}${each.line ? `:${each.line}` : ""}` : "", each.path].filter(Boolean).join("  ")),
        h("p", null, each.message),
        h("p", { class: "quiet" }, `${words(each.code)}, at stage ${each.stage}`),
      ),
    ),
  );
}

export function origin(one) {
  const by = one.principal ? ` by ${one.principal}` : "";
  const back = one.rollback_of ? `, a rollback to version ${one.rollback_of}` : "";
  return `${words(one.source)}${by}${back}`;
}

/** Return the end of a long id: ids of one process begin alike. */
function ending(id) {
  return id.length > 20 ? `…${id.slice(-16)}` : id;
}

export function requestLink(request) {
  const place = [request.id, request.start_time].map(encodeURIComponent).join("/");
  return h("a", { class: "mono id", href: `#/requests/${place}`, title: request.id }, ending(request.id) || "no id");
}
