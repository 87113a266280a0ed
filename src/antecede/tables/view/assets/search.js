// Search language of the page: parser and matcher.
// A served page sends the parsed terms to `antecede.tables.view.search`, which matches them in all tiles.

export const FIELDS = ["id", "text", "member", "topics", "kind", "run", "role", "source"];
const EVERYWHERE = ["id", "text", "member", "topics"]; // and the extra columns of the table

/** Error in a search, with a message for the user. */
export class SearchError extends Error {}

/** Return the terms of a search text: [{ not, field, word | expression, id }].
 *
 * All terms must match. A term is WORD, "several words" or /expression/, in any field;
 * FIELD:TERM searches one field; -TERM excludes. `id`: an event with this id matches as well:
 * member:17 finds the event of that name. FIELD:WORD with an unknown field is a word.
 * `own`: names of the extra columns. Throws SearchError.
 */
export function parseSearch(text, own = []) {
  const terms = [];
  const shape = /(-)?(?:(?:([\p{L}\p{N}_@][\p{L}\p{N}_@.-]*)|"([^"]+)"):)?(?:"([^"]*)"|\/((?:[^/\\]|\\.)+)\/|(\S+))/gu;
  for (const [token, minus, plainField, quotedField, quoted, expression, word] of text.matchAll(shape)) {
    const not = Boolean(minus);
    const whole = token.slice(not ? 1 : 0);
    const named = plainField ?? quotedField;
    const field = named === undefined ? null : fieldOf(named, own);
    if (named !== undefined && field === null && (quotedField !== undefined || word === undefined)) {
      throw new SearchError(`${unknown(named, own)}. Put the whole search in quotes to find its text`);
    }
    if (expression !== undefined) {
      checkExpression(expression);
      terms.push({ not, field, expression });
    } else if (named !== undefined && field === null) {
      terms.push({ not, field, word: whole, unknown: unknown(named, own) });
    } else {
      terms.push({ not, field, word: quoted ?? word, id: plainField && word ? whole : null });
    }
  }
  return terms;
}

/** Return the mask of the rows that match all terms; null without a term. */
export function matchRows(model, terms) {
  if (!terms.length) return null;
  const mask = new Uint8Array(model.size).fill(1);
  for (const term of terms) {
    const hit = new Uint8Array(model.size);
    const test = tester(term);
    const names = term.field ? [term.field] : [...EVERYWHERE, ...model.own.map((_, k) => `own.${k}`)];
    for (const name of names) mark(hit, model, name, test);
    if (term.id) mark(hit, model, "id", (text) => text === term.id);
    for (let row = 0; row < model.size; row++) mask[row] &= term.not ? 1 - hit[row] : hit[row];
  }
  return mask;
}

function fieldOf(name, own) {
  const small = name.toLowerCase();
  if (FIELDS.includes(small)) return small;
  const k = own.findIndex((column) => column.toLowerCase() === small);
  return k < 0 ? null : `own.${k}`;
}

function unknown(name, own) {
  return `no field "${name}"; fields are ${[...FIELDS, ...own].join(", ")}`;
}

function checkExpression(expression) {
  try {
    new RegExp(expression, "iu");
  } catch (error) {
    throw new SearchError(error.message);
  }
}

function tester({ word, expression }) {
  if (expression !== undefined) {
    const made = new RegExp(expression, "iu");
    return (text) => made.test(text);
  }
  const small = word.toLowerCase();
  return (text) => text.toLowerCase().includes(small);
}

/** Mark the rows whose text in a column passes a test. */
function mark(hit, model, name, test) {
  if (name === "kind") {
    const good = model.meta.kinds.map(test);
    for (let row = 0; row < model.size; row++) hit[row] |= good[model.kind[row]] ? 1 : 0;
    return;
  }
  const column = model.data.texts(name);
  if (!column) return;
  const good = new Uint8Array(column.size);
  for (let code = 0; code < column.size; code++) good[code] = test(column.value(code)) ? 1 : 0;
  for (let row = 0; row < model.size; row++) {
    if (column.codes[row] >= 0) hit[row] |= good[column.codes[row]];
  }
}
