// JSON requests to the server of this page.

/** Rejection by the server: its message, and the line of the text or null. */
export class RequestError extends Error {
  constructor(message, line = null) {
    super(message);
    this.line = line;
  }
}

const GONE = "The server does not answer. Check that “antecede play” still runs in its terminal.";

async function request(address, how) {
  let response;
  try {
    response = await fetch(address, how);
  } catch {
    throw new RequestError(GONE);
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new RequestError(response.ok ? "The server's answer is not valid JSON." : text);
  }
  if (!response.ok) throw new RequestError(answer.error ?? text, answer.line ?? null);
  return answer;
}

/** Get a plain text, such as the version of the watched files. */
export async function getText(name) {
  const response = await fetch(name, { cache: "no-store" });
  if (!response.ok) throw new RequestError(await response.text());
  return response.text();
}

/** Post while the page unloads; the answer is not read. */
export function postOnUnload(name, body) {
  fetch(name, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), keepalive: true }).catch(() => {});
}

export function post(name, body) {
  return request(name, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** `given`: parameters of the query string, by name. */
export function get(name, given = {}) {
  const query = new URLSearchParams(given).toString();
  return request(query ? `${name}?${query}` : name, { cache: "no-store" });
}
