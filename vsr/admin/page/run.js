// What a graph's run was: steps in the order of its tree, and the state of each node. No document here.

const ORDER = ["running", "failed", "timed_out", "cancelled", "suspended", "handed_out", "succeeded", "ended"];

function names(path) {
  return path.split("/").map((part) => {
    const [, name, number] = /^(.*?)(?:\[(\d+)\])?$/.exec(part);
    return { name, number: number === undefined ? 0 : Number(number) };
  });
}

/** Return the steps with what is inside of each behind it, branch by branch, round by round. */
export function inTreeOrder(steps) {
  const ranks = new Map(steps.map((step, rank) => [step.path, rank]));
  const placed = steps.map((step) => {
    const parts = step.path.split("/");
    const place = names(step.path).flatMap(({ name, number }, depth) => [
      ranks.get([...parts.slice(0, depth), name].join("/")) ?? 0,
      number,
    ]);
    return { step, place };
  });
  return placed.sort((one, other) => compare(one.place, other.place)).map(({ step }) => step);
}

function compare(one, other) {
  const most = Math.max(one.length, other.length);
  for (let at = 0; at < most; at += 1) {
    const difference = (one[at] ?? -1) - (other[at] ?? -1);
    if (difference) return difference;
  }
  return 0;
}

/** Return the depth of a step, and its own name with the numbers of the branches that it is in. */
export function label(path) {
  const parts = path.split("/");
  const around = parts.length > 1 ? /\[\d+\]$/.exec(parts[parts.length - 2]) : null;
  return { depth: parts.length - 1, name: parts[parts.length - 1], number: around ? around[0] : "" };
}

/** Return by path without numbers: how many steps ran there, their states, their models. */
export function byNode(graph) {
  const found = new Map();
  const at = (path) => {
    const key = names(path).map(({ name }) => name).join("/");
    if (!found.has(key)) found.set(key, { runs: 0, done: 0, states: [], models: [] });
    return found.get(key);
  };
  for (const step of graph.steps) {
    const node = at(step.path);
    const open = step.state === "handed_out" && step.ended_ms === null;
    node.runs += 1;
    node.states.push(open ? "running" : step.state);
    if (step.state === "succeeded" || step.state === "ended") node.done += 1;
  }
  for (const call of graph.calls) {
    const node = at(call.step);
    const model = call.model ?? `verifier (${call.verifier})`;
    if (!node.models.includes(model)) node.models.push(model);
  }
  for (const node of found.values()) {
    node.state = ORDER.find((state) => node.states.includes(state)) ?? "pending";
    if (node.state === "handed_out") node.state = "succeeded";
  }
  return found;
}

/** Return the end of all that is known of, in milliseconds; of what goes on, now. */
export function endOf(graph, nowMs) {
  const ends = [...graph.steps, ...graph.calls].map((each) => each.ended_ms ?? nowMs);
  return Math.max(graph.ended_ms ?? nowMs, ...ends, 1);
}

/** Return the four quarters of a line of time, each by its beginning. */
export function ticks(end) {
  return [0, 1, 2, 3].map((at) => (end * at) / 4);
}
