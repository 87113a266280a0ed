// State of the page in the address (URL fragment), for sharing and browser history.

const NUMBERS = ["x0", "x1", "y", "h", "run", "event", "pin"];
const WORDS = ["axis", "q", "order", "group", "theme", "tab"];
const LISTS = ["hide", "own"];

/** Parse the fragment of an address into an object; invalid values are omitted. */
export function hashToState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  for (const name of NUMBERS) {
    const value = given.has(name) ? Number(given.get(name)) : NaN;
    if (Number.isFinite(value)) state[name] = value;
  }
  for (const name of WORDS) if (given.has(name)) state[name] = given.get(name);
  for (const name of LISTS) {
    if (given.has(name)) {
      state[name] = given.get(name).split(".").map(Number).filter(Number.isInteger);
    }
  }
  for (const name of ["only", "chain"]) if (given.has(name)) state[name] = true;
  if (given.has("fold")) state.fold = given.getAll("fold");
  return state;
}

/** Format a state as fragment; undefined, null, empty and false values are omitted. */
export function stateToHash(state) {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    if (LISTS.includes(name)) {
      if (value.length) made.set(name, value.join("."));
    } else if (Array.isArray(value)) for (const one of value) made.append(name, one);
    else made.set(name, value === true ? "1" : String(value));
  }
  return `#${made}`;
}
