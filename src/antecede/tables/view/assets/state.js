// What is seen, in the address: so that a view can be shared, and back and forth work.

const NUMBERS = ["x0", "x1", "y", "h", "run", "event", "pin"];
const WORDS = ["axis", "q", "order", "group", "theme", "tab"];
const LISTS = ["hide", "own"];

/** Text behind the # of an address -> a plain object; what is no value is left out. */
export function stateOf(hash) {
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
  if (given.has("only")) state.only = true;
  if (given.has("fold")) state.fold = given.getAll("fold");
  return state;
}

/** The other way; what is undefined, null, empty or false is left out. */
export function hashOf(state) {
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
