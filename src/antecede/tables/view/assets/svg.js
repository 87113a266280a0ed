// SVG writer with the subset of the 2D context API that the painter uses, for export.

const DIGITS = 100;

export class SvgContext {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.body = [];
    this.path = [];
    this.state = {
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "11px sans-serif",
      textAlign: "left", textBaseline: "alphabetic", dash: [], open: 0,
    };
    this.stack = [];
    this.clips = 0;
    for (const name of Object.keys(this.state)) {
      Object.defineProperty(this, name, {
        get: () => this.state[name],
        set: (value) => (this.state[name] = value),
      });
    }
  }

  save() {
    this.stack.push({ ...this.state });
    this.state = { ...this.state, open: 0 };
  }

  restore() {
    for (let k = 0; k < this.state.open; k++) this.body.push("</g>");
    this.state = this.stack.pop();
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${num(x)} ${num(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${num(x)} ${num(y)}`);
  }

  quadraticCurveTo(a, b, x, y) {
    this.path.push(`Q${num(a)} ${num(b)} ${num(x)} ${num(y)}`);
  }

  rect(x, y, width, height) {
    this.path.push(`M${num(x)} ${num(y)}h${num(width)}v${num(height)}h${num(-width)}z`);
  }

  /** Add a full circle. */
  arc(x, y, r) {
    this.path.push(`M${num(x + r)} ${num(y)}a${num(r)} ${num(r)} 0 1 0 ${num(-2 * r)} 0a${num(r)} ${num(r)} 0 1 0 ${num(2 * r)} 0`);
  }

  clip() {
    const id = `c${++this.clips}`;
    this.body.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    this.state.open++;
  }

  setLineDash(dash) {
    this.state.dash = dash;
  }

  stroke() {
    if (!this.path.length) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.body.push(`<path d="${this.path.join("")}" fill="none" stroke="${this.strokeStyle}" stroke-width="${num(this.lineWidth)}"${dash}${this.faint()}/>`);
  }

  fill() {
    if (!this.path.length) return;
    this.body.push(`<path d="${this.path.join("")}" fill="${this.fillStyle}"${this.faint()}/>`);
  }

  fillRect(x, y, width, height) {
    this.body.push(`<rect x="${num(x)}" y="${num(y)}" width="${num(width)}" height="${num(height)}" fill="${this.fillStyle}"${this.faint()}/>`);
  }

  fillText(text, x, y) {
    this.words(text, x, y, `fill="${this.fillStyle}"`);
  }

  strokeText(text, x, y) {
    this.words(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${num(this.lineWidth)}" stroke-linejoin="round"`);
  }

  words(text, x, y, how) {
    const [, bold, size, fonts] = /^(bold )?([\d.]+)px (.*)$/.exec(this.font);
    const family = escaped(fonts);
    const anchor = { center: ' text-anchor="middle"', right: ' text-anchor="end"' }[this.textAlign] ?? "";
    const drop = this.textBaseline === "middle" ? Number(size) * 0.35 : 0;
    this.body.push(`<text x="${num(x)}" y="${num(y + drop)}" font-size="${num(size)}"${bold ? ' font-weight="bold"' : ""} font-family="${family}"${anchor} ${how}${this.faint()}>${escaped(text)}</text>`);
  }

  faint() {
    return this.globalAlpha < 1 ? ` opacity="${num(this.globalAlpha)}"` : "";
  }

  /** Return the document as text. */
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.body.join("\n")}</svg>\n`;
  }
}

function num(value) {
  return Math.round(value * DIGITS) / DIGITS;
}

/** Escape text for XML; characters that XML forbids are replaced. */
export function escaped(text) {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
