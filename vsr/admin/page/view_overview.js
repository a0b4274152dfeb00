// What serves, the last change, the last refusal, and what is under way.

import { h } from "./dom.js";
import { count, duration, plural, short } from "./format.js";
import { facts, mono, origin, pill, reasons, section, table, time } from "./parts.js";
import { underWay } from "./view_requests.js";

export const title = "Overview";
export const every = 2000;

export async function load(get) {
  const [status, requests] = await Promise.all([get("/api/v1/status"), optional(get, "/api/v1/requests?limit=10")]);
  return { status, requests };
}

async function optional(get, path) {
  try {
    return await get(path);
  } catch (error) {
    if (error.status !== 403) throw error;
    return null;
  }
}

export function view({ status, requests }) {
  const { serving, config } = status;
  return [
    h("h1", null, "Overview"),
    h("div", { class: "columns" }, [serves(status), listens(serving)]),
    config.last_rejection ? rejected(config) : null,
    requests ? section("Under way", underWay(requests)) : null,
    section("Generations", generations(serving)),
  ];
}

function serves({ config, release }) {
  const { active, latest } = config;
  if (!active) return section("What serves", h("p", { class: "quiet" }, "Nothing yet."));
  const isOther = latest && latest.version !== active.version && latest.status !== "active";
  return section(
    "What serves",
    facts([
      ["Version", h("strong", { class: "large" }, String(active.version))],
      ["Since", time(active.activated_at)],
      ["From", origin(active.origin)],
      ["Hash", mono(short(active.hash), active.hash)],
      ["Release", release],
      ["Last change", isOther ? [pill(latest.status), " ", time(latest.started_at), `, stage ${latest.stage}`] : "this version"],
    ]),
  );
}

function listens(serving) {
  const ports = Object.entries(serving.listeners);
  return section(
    "Process",
    facts([
      ["Up", duration(serving.uptime_s * 1000)],
      ["Workers", count(serving.workers)],
      ["Connections", count(serving.open_connections)],
      ["Listeners", h("ul", { class: "plain" }, ports.map(([name, port]) => h("li", { key: name }, name, " ", mono(String(port)))))],
    ]),
  );
}

function rejected({ last_rejection: one, active }) {
  const isOld = active && one.finished_at && one.finished_at < active.activated_at;
  const when = one.finished_at ?? one.started_at;
  return h(
    "section",
    { class: `card ${isOld ? "" : "alarm"}`, key: "rejection" },
    h("h2", null, "Last rejection"),
    h("p", { class: "lead" }, pill("failed", "rejected"), " ", time(when), ` from ${origin(one.origin)}. `, isOld ? "A newer change serves since." : "What served before serves on."),
    one.reasons?.length ? reasons(one.reasons) : h("p", null, one.error ?? ""),
  );
}

function generations(serving) {
  return table(
    "Generations",
    [["Version"], ["State"], ["Requests", "number"]],
    serving.generations.map((each) => ({
      key: String(each.version),
      cells: [String(each.version), each.active ? pill("active") : pill("draining", "ends with its requests"), plural(each.leases, "request")],
    })),
    "None serves.",
  );
}
