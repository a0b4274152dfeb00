// A graph as a picture: boxes in boxes, in the order in which they run, each in the colour of its state.

import { h } from "./dom.js";
import { cut, plural, words } from "./format.js";
import { byNode } from "./run.js";

const LINE = 16;
const PAD = 10;
const GAP = 22;
const LETTER = 7;
const LEAST = 104;
const MOST = 24;

/** Return the picture; `isTall`: from top to bottom, else from left to right. */
export function diagram(graph, isTall) {
  const states = byNode(graph);
  const body = list(graph.nodes, "", states, isTall);
  const width = body.width + 2;
  const height = body.height + 2;
  const told = [...states.values()];
  const running = told.filter((each) => each.state === "running").length;
  const summary = `Graph ${graph.name}: ${plural(graph.nodes.length, "step")}, ${running} running. The timeline lists them.`;
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `Picture of graph ${graph.name}` },
    h(
      "svg",
      { class: "diagram", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary },
      drawn(body, 1, 1, isTall),
    ),
  );
}

function list(nodes, path, states, isTall) {
  const boxes = nodes.map((node) => box(node, path ? `${path}/${node.id}` : node.id, states, isTall));
  const along = isTall ? "height" : "width";
  const across = isTall ? "width" : "height";
  const size = Math.max(0, ...boxes.map((each) => each[across]));
  let at = 0;
  const inner = boxes.map((each) => {
    const place = at;
    at += each[along] + GAP;
    const beside = isTall ? 0 : (size - each.height) / 2;
    if (isTall) each.width = size;
    return isTall ? { x: 0, y: place, box: each } : { x: place, y: beside, box: each };
  });
  return { [along]: Math.max(0, at - GAP), [across]: size, inner, isList: true };
}

function box(node, path, states, isTall) {
  const run = states.get(path) ?? { runs: 0, done: 0, models: [], state: "pending" };
  const texts = [{ kind: "name", text: cut(node.id, MOST) }, { kind: "dim", text: cut(said(node, run), MOST + 6) }];
  if (run.models.length) texts.push({ kind: "model", text: cut(run.models.join(", "), MOST + 4) });
  const parts = node.parts.map((part) => ({ label: cut(part.label, MOST), list: list(part.nodes, path, states, isTall) }));
  const head = PAD + LINE * texts.length + 4;
  let y = head;
  const inner = parts.map(({ label, list: found }) => {
    const top = parts.length > 1 ? LINE : 4;
    const placed = { x: PAD, y: y + top, box: found, label: parts.length > 1 ? label : "", labelAt: y + 11 };
    y += top + found.height + PAD;
    return placed;
  });
  const longest = Math.max(...texts.map(({ text }) => text.length * LETTER), ...parts.map(({ label }) => label.length * LETTER));
  const widest = Math.max(0, ...parts.map((part) => part.list.width));
  return {
    width: Math.max(LEAST, longest + 2 * PAD, widest + 2 * PAD),
    height: parts.length ? y : head + 4,
    inner,
    texts,
    state: run.state,
    title: `${path}: ${node.type}, ${words(run.state)}`,
  };
}

function said(node, run) {
  const times = run.runs > 1 ? ` ${run.done}/${run.runs}` : "";
  return `${node.type}${times}`;
}

function drawn(one, x, y, isTall) {
  const found = [];
  if (!one.isList) {
    found.push(
      h("rect", { class: `box ${one.state}`, x, y, width: one.width, height: one.height, rx: 6 }, h("title", null, one.title)),
      one.texts.map(({ kind, text }, at) => h("text", { class: kind, x: x + PAD, y: y + PAD + 8 + LINE * at }, text)),
    );
  }
  for (const { x: left, y: top, box: inner, label, labelAt } of one.inner) {
    if (label) found.push(h("text", { class: "dim", x: x + PAD, y: y + labelAt }, label));
    found.push(drawn(inner, x + left, y + top, isTall));
  }
  if (one.isList) {
    for (let at = 1; at < one.inner.length; at += 1) found.push(arrow(one.inner[at - 1], one.inner[at], x, y, isTall));
  }
  return found;
}

function arrow(before, after, x, y, isTall) {
  if (isTall) {
    const middle = x + before.box.width / 2;
    const start = y + before.y + before.box.height;
    const end = y + after.y;
    return h("path", { class: "arrow", d: `M${middle} ${start}V${end - 2}m-4 -4l4 4l4 -4` });
  }
  const start = x + before.x + before.box.width;
  const end = x + after.x;
  const from = y + before.y + before.box.height / 2;
  return h("path", { class: "arrow", d: `M${start} ${from}H${end - 2}m-4 -4l4 4l-4 4` });
}
