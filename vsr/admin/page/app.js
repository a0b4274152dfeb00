// Which view is shown, when it is read anew, and what is said when that fails.

import { Refused, get, hasToken, setToken } from "./api.js";
import { h, render } from "./dom.js";
import { duration } from "./format.js";
import { pill } from "./parts.js";
import * as audit from "./view_audit.js";
import * as backends from "./view_backends.js";
import * as overview from "./view_overview.js";
import * as request from "./view_request.js";
import * as requests from "./view_requests.js";
import * as versions from "./view_versions.js";

const VIEWS = { "": overview, requests, versions, backends, audit };
const NARROW = matchMedia("(max-width: 760px)");
const RETRY_MS = 2000;

const places = Object.fromEntries(["nav", "standing", "notice", "main"].map((id) => [id, document.getElementById(id)]));
let shown = { view: null, place: null, content: null };
let lastSeenAt = 0;
let timer = 0;
let turn = 0;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const parts = rest.map(decoded);
  if (name === "requests" && parts.length) return { view: request, name, parts };
  return { view: VIEWS[name] ?? overview, name: name in VIEWS ? name : "", parts };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Read the view of the address, show it, and come back when it is time. */
async function refresh() {
  clearTimeout(timer);
  turn += 1;
  const own = turn;
  const { view, name, parts } = route();
  const place = location.hash;
  if (place !== shown.place) begin(view, place, name);
  let wait = view.every;
  try {
    const content = await view.load(get, parts);
    const status = await standing();
    if (own !== turn) return;
    lastSeenAt = Date.now();
    shown.content = content;
    shown.status = status;
    paint();
    notice(null);
    if (view.isFinal?.(content)) wait = Math.max(wait, 10_000);
  } catch (error) {
    if (own !== turn) return;
    if (!(error instanceof Refused)) throw error;
    wait = failed(error);
  }
  if (wait && !document.hidden) timer = setTimeout(refresh, wait);
}

async function standing() {
  try {
    return await get("/api/v1/status");
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

function begin(view, place, name) {
  const isFirst = shown.view === null;
  shown = { view, place, content: null, status: shown.status };
  document.title = `${view.title} · vllm-sr`;
  places.main.setAttribute("aria-busy", "true");
  render(places.nav, navigation(name));
  render(places.main, h("p", { class: "quiet", key: `loading ${place}` }, "Loading"));
  if (!isFirst) {
    places.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function navigation(current) {
  return h(
    "ul",
    null,
    Object.entries(VIEWS).map(([name, view]) =>
      h("li", { key: name }, h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, view.title)),
    ),
  );
}

function paint() {
  const { view, content, status } = shown;
  if (content === null) return;
  render(places.main, view.view(content, { isNarrow: NARROW.matches }));
  places.main.setAttribute("aria-busy", "false");
  places.main.dataset.place = shown.place;
  const token = hasToken() ? h("button", { type: "button", class: "plain", "data-do": "forget", key: "forget" }, "Forget token") : null;
  render(places.standing, status ? [pill(status.state), h("span", { class: "version" }, ` v${status.config.active?.version ?? 0}`)] : null, token);
}

/** Say what went wrong; return when to try again, 0: not before somebody does something. */
function failed(error) {
  if (error.status === 0) {
    const since = lastSeenAt ? ` What is shown is ${duration(Date.now() - lastSeenAt)} old.` : "";
    notice(h("p", { class: "notice bad" }, h("strong", null, "The Router cannot be reached."), `${since} Trying again.`));
    document.body.classList.add("stale");
    audit.reset();
    return RETRY_MS;
  }
  if (error.status === 401) {
    ask(hasToken() ? error : null);
    return 0;
  }
  if (error.status === 404 && error.code === "REQUEST_NOT_FOUND" && shown.content !== null) {
    notice(h("p", { class: "notice warn" }, "The Router no longer keeps this request; what is shown is the last that was known."));
    return 0;
  }
  notice(null);
  places.main.setAttribute("aria-busy", "false");
  places.main.dataset.place = shown.place;
  render(places.main, h("h1", { key: "error" }, error.status === 403 ? "Not permitted" : error.status === 404 ? "Not found" : "Not shown"), h("p", { key: "text" }, error.message));
  return error.status >= 500 ? RETRY_MS : 0;
}

function notice(content) {
  document.body.classList.remove("stale");
  render(places.notice, content);
}

function ask(error) {
  notice(null);
  shown.content = null;
  render(places.standing, null);
  if (document.getElementById("token")) return;
  render(
    places.main,
    h(
      "form",
      { class: "card token", key: "token form", autocomplete: "off" },
      h("h1", null, "Token"),
      h("p", null, "This Router asks for a token of its management API. It stays in this tab until the tab is closed."),
      h("label", { for: "token" }, "Bearer token"),
      h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "token-error" }),
      h("p", { id: "token-error", class: "error", role: "alert" }, error ? error.message : ""),
      h("button", { type: "submit" }, "Continue"),
    ),
  );
  document.getElementById("token").focus();
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(document.getElementById("token").value.trim());
  render(places.main, h("p", { class: "quiet", key: "loading token" }, "Loading"));
  refresh();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-do=forget]")) {
    setToken("");
    refresh();
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
addEventListener("hashchange", refresh);
NARROW.addEventListener("change", paint);
refresh();
