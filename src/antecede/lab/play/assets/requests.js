// Requests to the server that this page came from: JSON there, JSON back, refusals as words.

/** What the server refused, in its words; `line` is where in the text, or null. */
export class Refused extends Error {
  constructor(message, line = null) {
    super(message);
    this.line = line;
  }
}

const GONE = "The server does not answer: is “antecede play” still running in its terminal?";

async function answered(address, how) {
  let response;
  try {
    response = await fetch(address, how);
  } catch {
    throw new Refused(GONE);
  }
  const text = await response.text();
  let said = null;
  try {
    said = JSON.parse(text);
  } catch {
    throw new Refused(response.ok ? "The server's answer cannot be read." : text);
  }
  if (!response.ok) throw new Refused(said.error ?? text, said.line ?? null);
  return said;
}

/** A short plain text, such as the version of what is watched. */
export async function fetchedText(name) {
  const response = await fetch(name, { cache: "no-store" });
  if (!response.ok) throw new Refused(await response.text());
  return response.text();
}

/** The same for a page that is left: nobody reads the answer. */
export function leftBehind(name, body) {
  fetch(name, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), keepalive: true }).catch(() => {});
}

export function asked(name, body) {
  return answered(name, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** `given`: name -> value of what stands behind the question mark. */
export function fetched(name, given = {}) {
  const query = new URLSearchParams(given).toString();
  return answered(query ? `${name}?${query}` : name, { cache: "no-store" });
}
