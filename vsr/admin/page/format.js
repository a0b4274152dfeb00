// Numbers, times and words as people read them.

const WHOLE = new Intl.NumberFormat("en");

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(s % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function count(value) {
  return value === null || value === undefined ? "unknown" : WHOLE.format(value);
}

export function plural(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

export function money(value, currency = "USD") {
  if (value === null || value === undefined) return "unknown";
  return `${value < 0.01 && value > 0 ? value.toPrecision(2) : value.toFixed(4)} ${currency}`;
}

/** Return a time of day here; the date too, unless it is today. */
export function clock(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const two = (value) => String(value).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

export function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

export function words(text) {
  return text.replaceAll("_", " ");
}

export function short(hash) {
  return hash.slice(0, 12);
}
