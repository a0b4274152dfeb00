// Who changed what, the newest first.

import { h } from "./dom.js";
import { count, words } from "./format.js";
import { mono, pill, table, time } from "./parts.js";

export const title = "Audit";
export const every = 5000;

const SHOWN = 200;
let entries = [];
let after = 0;
let truncated = false;

export async function load(get) {
  for (;;) {
    const page = await get(`/api/v1/observability/audit?after_sequence=${after}&limit=1000`);
    if (page.next_sequence < after || (entries.length && page.oldest_sequence > after + 1)) entries = [];
    truncated ||= page.truncated;
    entries = [...entries, ...page.entries].slice(-SHOWN);
    after = page.next_sequence;
    if (!page.has_more) return { entries, truncated };
  }
}

/** Forget what was read: another process answers now. */
export function reset() {
  entries = [];
  after = 0;
  truncated = false;
}

export function view({ entries: all, truncated: isCut }) {
  return [
    h("h1", null, "Audit"),
    h("p", { class: "lead quiet" }, `The last ${count(SHOWN)} entries of this process${isCut ? "; older ones are gone" : ""}. Each holds the hash of the one before.`),
    h(
      "section",
      { class: "card" },
      table(
        "Audit",
        [["#", "number"], ["When"], ["What"], ["Who"], ["End"], ["Request"], ["Hash"]],
        [...all].reverse().map((each) => ({ key: String(each.sequence), cells: cells(each) })),
        "Nothing was changed yet.",
      ),
    ),
  ];
}

function cells(each) {
  const { config } = each;
  const codes = config?.codes ?? [];
  const end = config
    ? [pill(config.result), config.version ? ` version ${config.version}` : "", codes.length ? h("span", { class: "note" }, codes.map(words).join(", ")) : null]
    : [pill(each.status < 400 ? "succeeded" : "failed", String(each.status)), h("span", { class: "note" }, `${each.method} ${each.path}`)];
  return [String(each.sequence), time(each.timestamp), mono(each.action), each.role || config?.source || "", end, mono(each.request_id ? each.request_id.slice(0, 12) : "", each.request_id), mono(each.hash.slice(0, 12), each.hash)];
}
