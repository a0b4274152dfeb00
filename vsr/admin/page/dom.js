// Elements as values, and a document made to match them: what is the same stays as it is.
// Text only ever becomes text; no markup is parsed anywhere.

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
const SAFE_LINK = /^(#|page\/)/;

/** Return an element as a value; `key` among the attributes tells siblings apart. */
export function h(name, attributes, ...children) {
  const { key, ...rest } = attributes ?? {};
  for (const each of Object.keys(rest)) {
    if (/^on/i.test(each)) throw new Error(`no handlers in attributes: ${each}`);
  }
  if (rest.href !== undefined && !SAFE_LINK.test(rest.href)) throw new Error("no such link");
  return { name, key, attributes: rest, children: flat(children) };
}

/** Make what lies inside of `root` match `children`. */
export function render(root, ...children) {
  patchChildren(root, flat(children));
}

function flat(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false && each !== "");
}

function patchChildren(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    if (child.vsrKey !== undefined) keyed.set(child.vsrKey, child);
  }
  let at = parent.firstChild;
  for (const each of wanted) {
    const found = typeof each === "object" && each.key !== undefined ? keyed.get(each.key) : at;
    if (found && isLike(found, each)) {
      if (found === at) at = at.nextSibling;
      else parent.insertBefore(found, at);
      patch(found, each);
    } else {
      parent.insertBefore(made(each, parent), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function isLike(node, wanted) {
  if (typeof wanted !== "object") return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === wanted.name && node.vsrKey === wanted.key;
}

function made(wanted, parent) {
  if (typeof wanted !== "object") return document.createTextNode(String(wanted));
  const isSvg = wanted.name === "svg" || parent.namespaceURI === SVG;
  const node = document.createElementNS(isSvg ? SVG : HTML, wanted.name);
  node.vsrKey = wanted.key;
  patch(node, wanted);
  return node;
}

function patch(node, wanted) {
  if (typeof wanted !== "object") {
    const text = String(wanted);
    if (node.data !== text) node.data = text;
    return;
  }
  const before = node.vsrAttributes ?? {};
  for (const [name, value] of Object.entries(wanted.attributes)) {
    if (before[name] === value) continue;
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const name of Object.keys(before)) {
    if (!(name in wanted.attributes)) node.removeAttribute(name);
  }
  node.vsrAttributes = wanted.attributes;
  patchChildren(node, wanted.children);
}
