// The few words that several parts say.

export function counted(number, thing, things = `${thing}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? thing : things}`;
}

/** A name in so many letters: its end tells it apart as often as its beginning. */
export function shortened(name, letters) {
  const whole = plain(name);
  if (whole.length <= letters) return whole;
  const head = Math.ceil((letters - 1) * 0.45);
  return `${whole.slice(0, head)}…${whole.slice(whole.length - (letters - 1 - head))}`;
}

/** A text as it can be shown in one line: control and bidirectional marks are spelt out. */
export function plain(text, most = 200) {
  const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (mark) => {
    if (mark === "\n" || mark === "\t") return " ";
    return `‹U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}
