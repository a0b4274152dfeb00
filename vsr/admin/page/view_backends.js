// Models and their endpoints: available or not and why, breakers, what is in flight.

import { h } from "./dom.js";
import { count, duration, plural, words } from "./format.js";
import { mono, pill, table } from "./parts.js";

export const title = "Backends";
export const every = 2000;

export function load(get) {
  return get("/api/v1/backends");
}

export function view(backends) {
  const clusters = backends.clusters;
  const down = clusters.flatMap((each) => each.endpoints).filter((each) => !each.available).length;
  return [
    h("h1", null, "Backends"),
    h("p", { class: "lead quiet" }, `${plural(clusters.length, "model")} of version ${backends.config_version}, ${down ? `${plural(down, "endpoint")} not available` : "every endpoint available"}`),
    clusters.length ? clusters.map(cluster) : h("p", { class: "quiet" }, "No model is configured."),
  ];
}

function cluster(one) {
  const { breaker } = one;
  const load = `${count(breaker.active)} of ${count(breaker.max_requests)} in flight`;
  return h(
    "section",
    { class: "card", key: one.name },
    h(
      "div",
      { class: "head" },
      h("h2", { class: "mono" }, one.name),
      h("span", { class: "quiet" }, `${words(one.lb_policy)}, ${load}${breaker.waiting ? `, ${breaker.waiting} waiting` : ""}`),
      one.panic ? pill("failed", "panic: unavailable endpoints are used") : null,
      h("span", { class: "push" }, pill(breaker.open ? "open" : "closed", breaker.open ? "breaker open" : "breaker closed")),
    ),
    table(
      `Endpoints of ${one.name}`,
      [["Endpoint"], ["State"], ["In flight", "number"], ["Weight", "number"], ["Latency", "number"], ["Attempts"]],
      one.endpoints.map((each, at) => ({
        key: `${at} ${each.name}`,
        cells: [mono(each.name), state(each), count(each.in_flight), count(each.weight), each.latency_ms === null ? h("span", { class: "quiet" }, "not measured") : duration(each.latency_ms), attempts(each.attempts)],
      })),
      "It has no endpoint.",
      "even",
    ),
  );
}

function state(endpoint) {
  if (endpoint.ejected) {
    const left = endpoint.ejected_for_s === null ? "" : `, ${duration(endpoint.ejected_for_s * 1000)} left`;
    return [pill("ejected"), h("span", { class: "note" }, `${words(endpoint.ejection_reason ?? "")}${left}`)];
  }
  if (endpoint.quarantined) return pill("quarantined");
  if (!endpoint.healthy) return [pill("unhealthy"), h("span", { class: "note" }, "by health checks")];
  return pill(endpoint.available ? "available" : "unhealthy", endpoint.available ? null : "not available");
}

function attempts(counts) {
  const known = Object.entries(counts).filter(([, value]) => value);
  if (!known.length) return h("span", { class: "quiet" }, "none");
  return h("ul", { class: "chips" }, known.map(([name, value]) => h("li", { key: name }, words(name), " ", h("strong", null, count(value)))));
}
