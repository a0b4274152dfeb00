// Recorded configurations, and what differs between two of them.

import { h } from "./dom.js";
import { plural, short } from "./format.js";
import { mono, pill, section, table } from "./parts.js";

export const title = "Versions";
export const every = 5000;

let known = { pair: "", diff: null };

export async function load(get, [from, to]) {
  const versions = await get("/api/v1/config/versions");
  const pair = `${from} ${to}`;
  if (from && to && known.pair !== pair) {
    const place = `/api/v1/config/versions/${encodeURIComponent(to)}/changes?from=${encodeURIComponent(from)}`;
    // Records never change: one answer is for good.
    known = { pair, diff: await get(place) };
  }
  return { versions, diff: from && to ? known.diff : null, from, to };
}

export function view({ versions, diff, from, to }) {
  return [
    h("h1", null, "Versions"),
    diff ? difference(diff, named(versions, from), named(versions, to)) : null,
    section("History", table("Recorded configurations", [["Version"], ["Recorded"], ["From"], ["Record"], ["Hash"], ["Differs"]], versions.map((each, at) => row(each, versions, at)), "Nothing is recorded yet.")),
  ];
}

function named(versions, id) {
  const found = versions.find((each) => each.version === id);
  return found ? name(found) : id;
}

function name(record) {
  return record.config_version ? `version ${record.config_version}` : `record ${record.version}`;
}

function row(each, versions, at) {
  const older = versions.slice(at + 1).find((other) => other.filename);
  const active = versions.find((other) => other.active && other.filename);
  const links = [];
  if (each.filename && older) links.push(h("a", { key: "older", href: link(older, each) }, `from ${name(older)}`));
  if (each.filename && active && active !== each && active !== older) links.push(h("a", { key: "active", href: link(each, active) }, "to what serves"));
  return {
    key: each.version,
    cells: [
      [each.config_version ? h("strong", null, String(each.config_version)) : h("span", { class: "quiet" }, "none"), each.active ? [" ", pill("active", "serves")] : null],
      each.timestamp,
      [each.source, each.rollback_of ? h("span", { class: "note" }, `back to ${each.rollback_of}`) : null],
      mono(each.version),
      mono(short(each.hash), each.hash),
      links.length ? h("span", { class: "links" }, links) : h("span", { class: "quiet" }, each.filename ? "" : "without a document"),
    ],
  };
}

function link(from, to) {
  return `#/versions/${encodeURIComponent(from.version)}/${encodeURIComponent(to.version)}`;
}

function difference(diff, from, to) {
  const { changes } = diff;
  return h(
    "section",
    { class: "card", key: "diff" },
    h("div", { class: "head" }, h("h2", null, `From ${from} to ${to}`), h("span", { class: "quiet" }, plural(changes.length, "change")), h("a", { class: "push", href: "#/versions" }, "Close")),
    changes.length ? h("ul", { class: "diff" }, changes.map(change)) : h("p", { class: "quiet" }, "The two say the same."),
  );
}

function change(each) {
  return h(
    "li",
    { key: each.path },
    h("p", { class: "mono where" }, each.path, " ", h("span", { class: "quiet" }, each.kind)),
    each.kind === "added" ? null : h("pre", { class: "before" }, lines("−", each.before ?? null)),
    each.kind === "removed" ? null : h("pre", { class: "after" }, lines("+", each.after ?? null)),
  );
}

function lines(sign, value) {
  return written(value, "")
    .split("\n")
    .map((line) => `${sign} ${line}`)
    .join("\n");
}

/** Return a value as YAML would have it, more or less. */
function written(value, indent) {
  if (Array.isArray(value) && value.length) {
    return value.map((each) => `${indent}- ${written(each, `${indent}  `).trimStart()}`).join("\n");
  }
  if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) {
    return Object.entries(value)
      .map(([key, each]) => {
        const isDeep = each && typeof each === "object" && Object.keys(each).length;
        return isDeep ? `${indent}${key}:\n${written(each, `${indent}  `)}` : `${indent}${key}: ${written(each, "")}`;
      })
      .join("\n");
  }
  if (typeof value === "string") return /^[\w./:@ -]+$/.test(value) && value.trim() === value ? value : JSON.stringify(value);
  return JSON.stringify(value);
}
