// Mouse, touch, wheel and keys on a surface, as a few verbs: pan, zoom, click, hover, take, drop.

const CLICK = 5; // pixels within which a press is no drag

/** Hand what happens on an element to `verbs`:
 *
 * pan(dx, dy) · zoom(factor, x) · zoomLanes(factor, y) · click(x, y, more) · hover(x, y) · away()
 * · grab(x, y): truthy where a press takes something up instead of panning · drag(x, y) ·
 * drop(x, y) · cancelled(): the browser took the drag for its own · done()
 *
 * Those that are not given mean nothing; without `wheel` the wheel is left to the page.
 */
export function listen(element, verbs) {
  const down = new Map();
  let start = null;
  let taken = false;
  let moved = false;
  const at = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    element.setPointerCapture(event.pointerId);
    const [x, y] = at(event);
    down.set(event.pointerId, { x, y });
    if (down.size === 1) {
      start = { x, y };
      moved = false;
      taken = Boolean(verbs.grab?.(x, y));
    } else taken = false;
  });

  element.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    const last = down.get(event.pointerId);
    if (!last) return verbs.hover?.(x, y);
    if (down.size === 2) pinch(event.pointerId, x, y);
    else if (!moved && Math.hypot(x - start.x, y - start.y) < CLICK) return undefined;
    else if (taken) verbs.drag(x, y);
    else verbs.pan?.(moved ? x - last.x : x - start.x, moved ? y - last.y : y - start.y);
    moved = true;
    down.set(event.pointerId, { x, y });
    return undefined;
  });

  function pinch(id, x, y) {
    if (!verbs.zoom) return;
    const [other] = [...down].filter(([key]) => key !== id).map(([, point]) => point);
    const last = down.get(id);
    const before = Math.max(12, Math.abs(last.x - other.x));
    const after = Math.max(12, Math.abs(x - other.x));
    if (Math.abs(last.x - other.x) > Math.abs(last.y - other.y)) {
      verbs.zoom(after / before, (x + other.x) / 2);
    } else {
      const tall = Math.max(12, Math.abs(y - other.y)) / Math.max(12, Math.abs(last.y - other.y));
      verbs.zoomLanes(tall, (y + other.y) / 2);
    }
    verbs.pan((x - last.x) / 2, (y - last.y) / 2);
  }

  function wheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 24 : event.deltaMode === 2 ? 400 : 1;
    verbs.wheel(at(event), event.deltaX * unit, event.deltaY * unit, event);
  }

  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    const [x, y] = at(event);
    if (!down.size) {
      if (taken && moved && event.type === "pointercancel" && verbs.cancelled) verbs.cancelled();
      else if (taken && moved) verbs.drop(x, y);
      else if (!moved && event.type === "pointerup") verbs.click?.(x, y, event.shiftKey);
      taken = false;
      verbs.done?.();
    }
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("pointerleave", () => verbs.away?.());

  if (verbs.wheel) element.addEventListener("wheel", wheel, { passive: false });
  element.addEventListener("dblclick", (event) => verbs.double?.(...at(event)));
}
