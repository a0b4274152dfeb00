// Requests under way, graphs with their nodes, and the last that ended.

import { h } from "./dom.js";
import { count, duration, plural, words } from "./format.js";
import { mono, pill, requestLink, section, table, time } from "./parts.js";
import { byNode } from "./run.js";

export const title = "Requests";
export const every = 1000;

export function load(get) {
  return get("/api/v1/requests?limit=100");
}

export function view(requests) {
  const missing = requests.missing_workers;
  return [
    h("h1", null, "Requests"),
    missing.length ? h("p", { class: "notice warn", key: "missing" }, `${missing.map((each) => `Worker ${each}`).join(", ")} did not answer; its requests are not listed.`) : null,
    section("Under way", underWay(requests)),
    section("Ended", h("p", { class: "quiet" }, `The last ${count(requests.kept)} that ended are kept in memory.`), ended(requests)),
  ];
}

export function underWay(requests) {
  const rest = requests.under_way_total - requests.under_way.length;
  return [
    table(
      "Requests under way",
      [["Request"], ["Asks for"], ["At"], ["Work", "wide"], ["For", "number"]],
      requests.under_way.map((each) => ({
        key: `${each.worker} ${each.start_time} ${each.id}`,
        cells: [requestLink(each), route(each), pill(each.stage), work(each), duration(each.duration_ms)],
      })),
      "Nothing is under way.",
    ),
    rest > 0 ? h("p", { class: "quiet", key: "rest" }, `and ${plural(rest, "more")}`) : null,
  ];
}

function route(request) {
  const served = request.model && request.model !== request.model_asked ? request.model : "";
  const way = [request.decision, served].filter(Boolean).join(" → ");
  return h("span", { class: "stack" }, mono(request.model_asked ?? request.path), way ? h("span", { class: "quiet" }, way) : null);
}

function work(request) {
  const { graph } = request;
  if (!graph) return request.attempts ? plural(request.attempts, "attempt") : "";
  const states = byNode(graph);
  const open = graph.calls.filter((call) => call.state === "running");
  return h(
    "div",
    { class: "work" },
    h(
      "ol",
      { class: "chain", "aria-label": `Graph ${graph.name}` },
      graph.nodes.map((node) => {
        const run = within(states, node.id);
        const times = run.runs > 1 ? ` ${run.done}/${run.runs}` : "";
        return h("li", { key: node.id, class: run.state, title: `${node.type}, ${words(run.state)}` }, node.id, times, h("span", { class: "hidden" }, ` ${words(run.state)}`));
      }),
    ),
    open.length
      ? h(
          "ul",
          { class: "calls" },
          open.slice(0, 6).map((call) =>
            h("li", { key: String(call.ordinal) }, mono(call.model ?? call.verifier ?? ""), " ", h("span", { class: "quiet" }, `${call.attempts.at(-1)?.endpoint ?? ""} ${duration(request.duration_ms - call.started_ms)}`)),
          ),
          open.length > 6 ? h("li", { key: "rest", class: "quiet" }, `and ${open.length - 6} more`) : null,
        )
      : null,
  );
}

function within(states, id) {
  const own = states.get(id) ?? { runs: 0, done: 0, state: "pending" };
  return own;
}

function ended(requests) {
  return table(
    "Requests that ended",
    [["Request"], ["Asked for"], ["End"], ["Status", "number"], ["Attempts", "number"], ["Began"], ["Took", "number"]],
    requests.ended.map((each) => ({
      key: `${each.worker} ${each.start_time} ${each.id}`,
      cells: [
        requestLink(each),
        route(each),
        [pill(each.outcome), each.cause || each.error ? h("span", { class: "note" }, words(each.cause ?? each.error)) : null],
        each.status === null ? "none" : String(each.status),
        count(each.attempts),
        time(each.start_time),
        duration(each.duration_ms),
      ],
    })),
    "None has ended yet.",
  );
}
