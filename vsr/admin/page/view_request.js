// One request, explained: why it went where it went, its graph, its attempts, its ledger, its end.

import { diagram } from "./diagram.js";
import { h } from "./dom.js";
import { count, duration, money, plural, words } from "./format.js";
import { facts, meter, mono, pill, section, table, time } from "./parts.js";
import { attemptTimeline, graphTimeline } from "./timeline.js";

export const title = "Request";
export const every = 1000;

export async function load(get, [id, start]) {
  const detail = await get(`/api/v1/requests/${encodeURIComponent(id)}?start_time=${encodeURIComponent(start ?? "")}`);
  return detail;
}

/** Return whether it changes no more. */
export function isFinal(detail) {
  return detail.request.stage === "ended";
}

export function view(detail, { isNarrow }) {
  const { request, routing } = detail;
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/requests" }, "Requests")),
    h("h1", { class: "mono wrap" }, request.id || "Request without an id"),
    h("p", { class: "lead" }, standing(request), ` after ${duration(request.duration_ms)}`),
    h("div", { class: "columns" }, about(request), reasonsOf(routing)),
    routing.graph ? graph(routing.graph, request, isNarrow) : plain(detail),
    routing.ledger ? ledger(routing.ledger) : null,
    detail.transfer ? end(detail) : null,
  ];
}

function standing(request) {
  if (request.stage !== "ended") return pill(request.stage);
  const why = request.cause ?? request.error;
  return [pill(request.outcome), why ? ` ${words(why)}` : "", request.status ? ` with status ${request.status}` : ""];
}

function about(request) {
  return section(
    "Request",
    facts([
      ["Began", time(request.start_time)],
      ["Asks for", mono(request.model_asked ?? "nothing known")],
      ["Listener", request.listener],
      ["Line", h("span", null, mono(`${request.method} ${request.path}`), ` ${request.protocol}`)],
      ["Configuration", request.config_version ? `version ${request.config_version}` : "none"],
      ["Worker", request.worker === null ? null : String(request.worker)],
    ]),
  );
}

const BECAUSE = {
  decision: "A decision holds.",
  default: "No decision holds, so the default serves.",
  model: "The client named the model.",
  undecided: "Nothing was decided.",
};

function reasonsOf({ decision, signals, fallbacks }) {
  const chips = signals.map((each) => {
    const sure = each.confidence === null ? "unknown" : each.confidence === 1 ? "" : each.confidence.toFixed(2);
    return h("li", { key: `${each.type}:${each.name}`, class: decision.matched.includes(`${each.type}:${each.name}`) ? "counts" : null }, `${each.type}:${each.name}`, sure ? h("span", { class: "quiet" }, ` ${sure}`) : null);
  });
  return section(
    "Why",
    h("p", null, BECAUSE[decision.because] ?? ""),
    facts([
      ["Decision", decision.name ? h("strong", null, decision.name) : null],
      ["Rules", decision.rules ? mono(decision.rules) : null],
      ["Confidence", decision.name && decision.confidence !== null ? decision.confidence.toFixed(2) : null],
      ["Priority", decision.priority === null ? null : [decision.priority, decision.tier ? `, tier ${decision.tier}` : ""].join("")],
      ["Recipe", decision.recipe],
      ["Chosen by", decision.method],
      ["Model", decision.model ? mono(decision.model) : null],
      ["Reasoning", decision.reasoning_mode],
      ["Signals", chips.length ? h("ul", { class: "chips" }, chips) : decision.because === "undecided" ? null : "none matched"],
      ["Models called", fallbacks.length ? fallbacks.join(" → ") : null],
    ]),
  );
}

function graph(one, request, isNarrow) {
  const state = one.state === "running" ? pill("running") : [pill(one.state), one.error ? ` ${words(one.error)}` : ""];
  return [
    section("Graph", h("p", { class: "lead" }, mono(one.name), " ", state), diagram(one, isNarrow)),
    section("Timeline", graphTimeline(one, request.duration_ms)),
  ];
}

function plain({ attempts, request }) {
  if (!attempts.length) return section("Attempts", h("p", { class: "quiet" }, "No backend was asked."));
  return section("Attempts", attemptTimeline(attempts, request.duration_ms));
}

function ledger(one) {
  const limits = [
    limit("Attempts", one.attempts, one.max_attempts, 0, count),
    one.max_tokens === null ? known("Tokens", tokens(one.entries), count) : limit("Tokens", one.spent_tokens, one.max_tokens, one.reserved_tokens, count),
    one.max_usd === null ? known("Cost", costs(one.entries), money) : limit("Cost", one.spent_usd, one.max_usd, one.reserved_usd, money),
  ];
  return section(
    "Ledger",
    h("div", { class: "limits" }, limits),
    one.overrun ? h("p", { class: "notice warn" }, "A backend reported more than was reserved: nothing more is admitted.") : null,
    table(
      "Ledger entries",
      [["#", "number"], ["Model"], ["Used of reserved", "number"], ["Prompt", "number"], ["Answer", "number"], ["Cost", "number"], ["State"]],
      one.entries.map((each) => ({
        key: String(each.ordinal),
        cells: [
          String(each.ordinal),
          h("span", { class: "stack" }, mono(each.model), each.step ? h("span", { class: "quiet mono" }, each.step) : null),
          reserved(each),
          used(each.prompt_tokens, each),
          used(each.completion_tokens, each),
          each.currency === null ? "not counted" : each.state === "running" ? "open" : money(each.cost, each.currency),
          [pill(each.state), each.refused ? h("span", { class: "note" }, "refused one attempt more") : null],
        ],
      })),
      "No call was reserved for.",
    ),
  );
}

function tokens(entries) {
  return entries.map((each) => (each.prompt_tokens === null ? null : each.prompt_tokens + each.completion_tokens));
}

function costs(entries) {
  return entries.map((each) => each.cost);
}

/** Return the sum of what is known, where no limit counts it; what is unknown is said to be. */
function known(name, values, shown) {
  const there = values.filter((each) => each !== null);
  const unknown = values.length - there.length;
  const sum = there.reduce((one, other) => one + other, 0);
  const told = there.length ? shown(sum) : "unknown";
  const rest = unknown && there.length ? `, ${plural(unknown, "call")} unknown` : "";
  return h("div", { key: name, class: "limit" }, h("span", { class: "quiet" }, name), h("span", null, `${told}${rest}, no limit`));
}

function limit(name, spent, most, open, shown) {
  const more = open ? `, ${shown(open)} reserved` : "";
  const told = most === null ? `${shown(spent)}${more}, no limit` : `${shown(spent)}${more} of ${shown(most)}`;
  return h("div", { key: name, class: "limit" }, h("span", { class: "quiet" }, name), h("span", null, told), most === null ? null : meter(spent, most, `${name}: ${told}`, open));
}

function reserved(entry) {
  return h(
    "span",
    { class: "stack" },
    entry.reservations.map((each, at) => {
      if (each.tokens === null) return at ? null : h("span", { key: "0", class: "quiet" }, "no limit asked");
      if (each.settled && each.used_tokens !== null) return h("span", { key: String(at) }, `${count(each.used_tokens)} of `, count(each.tokens));
      return h("span", { key: String(at) }, h("span", { class: "quiet" }, each.settled ? "counts as used " : "open "), count(each.tokens));
    }),
  );
}

function used(tokens, entry) {
  if (tokens !== null) return count(tokens);
  return h("span", { class: "quiet" }, entry.state === "running" ? "open" : "unknown");
}

function end({ transfer, usage }) {
  return section(
    "End",
    facts([
      ["Usage", usage ? `${plural(usage.prompt_tokens, "prompt token")}, ${plural(usage.completion_tokens, "answer token")}` : "unknown"],
      ["First byte", transfer.first_byte_ms === null ? null : duration(transfer.first_byte_ms)],
      ["Backend's head", transfer.upstream_ms === null ? null : duration(transfer.upstream_ms)],
      ["Received", `${count(transfer.bytes_received)} bytes`],
      ["Sent", `${count(transfer.bytes_sent)} bytes`],
      ["Flags", transfer.flags === "-" ? "none" : mono(transfer.flags)],
    ]),
  );
}
