// Export of the current step: the diagrams, headings and state tables on the page, as one SVG file.

import { shape } from "./drawing.js";

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "visibility", "font-family", "font-size", "font-weight", "paint-order", "text-anchor"];

export function exportStep(app) {
  const svg = drawPage(document.getElementById("runs"));
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: `${app.fileName()}-step-${app.step}.svg` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  app.say(`Step ${app.step} is exported as ${link.download}.`);
}

/** Print the diagrams on one page of their size. */
export function fitPrint() {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [sheet];
  window.addEventListener("beforeprint", () => {
    const runs = document.getElementById("runs");
    const height = runs.scrollHeight + document.getElementById("top").offsetHeight;
    sheet.replaceSync(`@page { size: ${runs.scrollWidth}px ${height + 8}px; margin: 0; }`);
  });
}

/** Return the visible content of an element as SVG. */
function drawPage(root) {
  const box = root.getBoundingClientRect();
  const size = { width: Math.ceil(root.scrollWidth), height: Math.ceil(root.scrollHeight) };
  const svg = shape("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${size.width} ${size.height}`, ...size },
    shape("rect", { ...size, fill: getComputedStyle(document.body).backgroundColor }));
  drawElement(root, svg, box);
  return svg;
}

function drawElement(element, into, origin) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden" || element.matches(".moves")) return;
  if (element.matches("svg")) into.append(copyDiagram(element, origin));
  else {
    drawBox(element, style, into, origin);
    if (element.matches("select")) drawText(element.selectedOptions[0].textContent, element.getBoundingClientRect(), style, into, origin);
    else for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) drawTextNode(child, style, into, origin);
      else if (child.nodeType === Node.ELEMENT_NODE) drawElement(child, into, origin);
    }
  }
}

/** Draw the background and the borders of an element. */
function drawBox(element, style, into, origin) {
  const border = ["Top", "Right", "Bottom", "Left"].map((side) => (parseFloat(style[`border${side}Width`]) ? style[`border${side}Color`] : null));
  const hasBackground = style.backgroundColor !== "rgba(0, 0, 0, 0)" && !element.matches("select");
  for (const box of element.getClientRects()) {
    const [x, y, right, bottom] = [box.left - origin.left, box.top - origin.top, box.right - origin.left, box.bottom - origin.top];
    if (hasBackground) into.append(shape("rect", { x, y, width: box.width, height: box.height, rx: parseFloat(style.borderRadius) || 0, fill: style.backgroundColor }));
    const lines = [[x, y, right, y], [right, y, right, bottom], [x, bottom, right, bottom], [x, y, x, bottom]];
    if (element.matches("button, select")) continue;
    lines.forEach(([x1, y1, x2, y2], k) => border[k] && into.append(shape("line", { x1, y1, x2, y2, stroke: border[k] })));
  }
}

/** Draw a text node, one text for each of its lines. */
function drawTextNode(node, style, into, origin) {
  const range = document.createRange();
  let line = null;
  for (const { 0: word, index } of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const [box] = range.getClientRects();
    if (!box) continue;
    if (line && Math.abs(line.box.top - box.top) < 2) line.text += word;
    else {
      if (line) drawText(line.text, line.box, style, into, origin);
      line = { text: word, box };
    }
  }
  if (line) drawText(line.text, line.box, style, into, origin);
}

function drawText(text, box, style, into, origin) {
  const size = parseFloat(style.fontSize);
  into.append(shape("text", { x: box.left - origin.left, y: box.top - origin.top + box.height / 2 + size * 0.35, fill: style.color, "font-size": size, "font-weight": style.fontWeight, "font-family": style.fontFamily }, text.trimEnd()));
}

/** Return a copy of a diagram whose styles are attributes. */
function copyDiagram(svg, origin) {
  const box = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((one) => [...one.querySelectorAll("*")]);
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of PROPERTIES) if (style[name]) to[k].setAttribute(name, style[name]);
  });
  to.forEach((element, k) => getComputedStyle(from[k]).display === "none" && element.remove());
  for (const element of copy.querySelectorAll(".grip, .timeline-grip, .column:not(.now)")) element.remove();
  for (const [name, value] of Object.entries({ x: box.left - origin.left, y: box.top - origin.top })) copy.setAttribute(name, value);
  return copy;
}
