// Asks the management API; the token stays in this tab.

const KEY = "vsr-token";
const PATIENCE_MS = 10_000;

/** What the API refuses; `status` 0: it cannot be reached. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function setToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

/** Return what is at `path`; throws Refused. */
export async function get(path) {
  const token = sessionStorage.getItem(KEY);
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  let response;
  let body;
  try {
    response = await fetch(path, {
      headers,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    body = await response.text();
  } catch {
    throw new Refused(0, "UNREACHABLE", "The Router cannot be reached.");
  }
  let content;
  try {
    content = JSON.parse(body);
  } catch {
    throw new Refused(response.status, "UNREADABLE", "The answer is not the Router's.");
  }
  if (response.ok) return content;
  const told = content?.error ?? {};
  throw new Refused(response.status, told.code ?? "", told.message ?? `Status ${response.status}`);
}
