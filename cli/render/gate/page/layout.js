// Pictures of layouts: every shown cell of the physical box, and what it holds under the pointer, the finger or the arrow keys.
const MOST_PIXELS = 4000;
function product(lists) { return lists.reduce((found, list) => found.flatMap((head) => list.map((item) => [...head, item])), [[]]); }
function unflatten(number, shape) {
  const found = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) { found.unshift(number % shape[axis]); number = Math.floor(number / shape[axis]); }
  return found;
}
const flatten = (cell, shape, axes) => axes.reduce((flat, axis) => flat * shape[axis] + cell[axis], 0);
function placed(picture) {
  const indices = product(picture.levels.map((level) => level.shown.map((_, k) => k)));
  const total = (part, right) => part.reduce((sum, k, axis) => sum + (picture.levels[axis].right === right ? picture.levels[axis].starts[k] : 0), 0);
  return indices.map((part, k) => ({
    cell: part.map((at, axis) => picture.levels[axis].shown[at]), x: total(part, true), y: total(part, false), holds: picture.cells[k],
  }));
}
function sizeWord(padding) {
  return { value: "padding", undef: "padding that may hold anything", forbidden: "padding that nobody may touch" }[padding];
}
function logicalWord(number, picture) {
  const at = unflatten(number, picture.logical);
  return picture.names.map((name, axis) => name + " = " + at[axis]).join(", ");
}
function told(place, picture, layout) {
  const flat = flatten(place.cell, picture.box, place.cell.map((_, axis) => axis));
  const lines = [];
  if (Array.isArray(place.holds)) lines.push("several logical indices meet here: " + place.holds.map((n) => "[" + unflatten(n, picture.logical).join(", ") + "]").join(" and "));
  else if (place.holds >= 0) lines.push("logical index: " + logicalWord(place.holds, picture));
  else {
    const step = layout.steps[-place.holds - 1];
    lines.push(sizeWord(step.padding) + (step.padding === "value" ? "; it holds " + step.holds : "") + (layout.steps.length > 1 ? " (step " + -place.holds + ")" : ""));
  }
  lines.push("flat offset: " + comma(flat) + " of " + comma(picture.total));
  if (picture.groups.length > 1) {
    const at = picture.groups.map((group) => flatten(place.cell, picture.box, group));
    lines.push("after flattening: [" + at.join(", ") + "]");
    if (picture.channels) {
      const across = at[at.length - 1], names = at.length === 3 ? ["layer", "y"] : ["y"];
      lines.push("texel: x = " + Math.floor(across / picture.channels) + ", " + names.map((name, k) => name + " = " + at[k]).reverse().join(", ") +
        (picture.channels > 1 ? ", channel = " + (across % picture.channels) + " (" + "rgba"[across % 4] + ")" : ""));
    }
  }
  return { title: "physical [" + place.cell.join(", ") + "]", lines };
}
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function colours() {
  const names = ["--cell-light", "--cell-ink", "--pad", "--pad-line", "--clash", "--clash-ink", "--line-strong", "--accent", "--soft", "--card"];
  return Object.fromEntries(names.map((name) => [name.slice(2), variable(name)]));
}
function hue(share, colour) {
  const at = share < 0.5 ? 205 - 220 * share : 95 - 110 * (share - 0.5);
  return "hsl(" + at.toFixed(1) + " " + (60 + 20 * share).toFixed(0) + "% " + colour["cell-light"] + ")";
}
function drawCell(pen, place, size, layout, picture, colour) {
  const x = place.x * size, y = place.y * size, many = Array.isArray(place.holds), top = Math.max(1, picture.logical.reduce((a, b) => a * b, 1) - 1);
  pen.fillStyle = many ? colour.clash : place.holds < 0 ? colour.pad : hue(place.holds / top, colour);
  pen.fillRect(x, y, size, size);
  if (!many && place.holds < 0) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, size, size);
    pen.clip();
    pen.strokeStyle = colour["pad-line"];
    pen.beginPath();
    for (let d = 0; d < 2 * size; d += Math.max(4, size / 5)) { pen.moveTo(x + d, y); pen.lineTo(x + d - size, y + size); }
    pen.stroke();
    pen.restore();
  }
  pen.strokeStyle = colour["line-strong"];
  pen.lineWidth = size < 12 ? 0.4 : 0.8;
  pen.strokeRect(x, y, size, size);
  if (many || place.holds >= 0) label(pen, place, size, picture, many ? colour["clash-ink"] : colour["cell-ink"]);
}
function label(pen, place, size, picture, ink) {
  const first = Array.isArray(place.holds) ? place.holds[0] : place.holds;
  const at = unflatten(first, picture.logical);
  const text = at.join(",") + (Array.isArray(place.holds) ? " +" + (place.holds.length - 1) : "");
  let height = Math.min(13, size * 0.34);
  pen.font = height + "px system-ui, sans-serif";
  const wide = pen.measureText(text).width;
  if (wide > size - 4) { height *= (size - 4) / wide; pen.font = height + "px system-ui, sans-serif"; }
  if (height < 6.5) return;
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, x0(place, size), y0(place, size));
}
const x0 = (place, size) => (place.x + 0.5) * size;
const y0 = (place, size) => (place.y + 0.5) * size;
const tip = h("div", { class: "tip", hidden: true, role: "tooltip", id: "tip" });

function canvasOf(layout) {
  const picture = layout.picture, places = placed(picture);
  const xs = [...new Set(places.map((p) => p.x))].sort((a, b) => a - b), ys = [...new Set(places.map((p) => p.y))].sort((a, b) => a - b);
  const grid = new Map(places.map((p) => [p.x + " " + p.y, p]));
  const least = Math.min(56, MOST_PIXELS / Math.max(picture.width, picture.height));
  const comfortable = places.length <= 100 ? 46 : places.length <= 400 ? 34 : 20, smallest = places.length <= 200 ? 28 : 12;
  const fitting = Math.min((pane.clientWidth - 90) / picture.width, 540 / picture.height);
  let size = Math.min(least, comfortable, Math.max(smallest, fitting)), current = null;
  const canvas = h("canvas", { tabindex: "0", role: "application", "aria-roledescription": "picture of a layout", "aria-label": "Layout of " + (layout.buffer || "the map") + ": arrow keys move from cell to cell" });
  const readout = h("p", { class: "readout", role: "status" }, h("span", { class: "hint" }, "Point at a cell, or focus the picture and use the arrow keys."));
  const pen = canvas.getContext("2d");
  function draw() {
    const colour = colours(), scale = window.devicePixelRatio || 1, width = picture.width * size + 2, height = picture.height * size + 2;
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    pen.setTransform(scale, 0, 0, scale, scale, scale);
    for (const place of places) drawCell(pen, place, size, layout, picture, colour);
    elisions(pen, picture, size, colour);
    if (current) {
      pen.strokeStyle = colour.accent;
      pen.lineWidth = 3;
      pen.strokeRect(current.x * size, current.y * size, size, size);
    }
  }
  function show(place, x, y) {
    if (place !== current) { current = place; draw(); }
    if (!place) { tip.hidden = true; return; }
    const { title, lines } = told(place, picture, layout);
    readout.replaceChildren(h("b", {}, title), " · ", lines.join(" · "));
    tip.replaceChildren(h("b", {}, title), ...lines.map((line) => h("div", {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
  }
  const before = (list, value) => { let k = -1; while (k + 1 < list.length && list[k + 1] <= value) k++; return k; };
  function under(event) {
    const box = canvas.getBoundingClientRect(), x = (event.clientX - box.left - 1) / size, y = (event.clientY - box.top - 1) / size;
    const i = before(xs, x), j = before(ys, y);
    return i >= 0 && j >= 0 && x < xs[i] + 1 && y < ys[j] + 1 ? grid.get(xs[i] + " " + ys[j]) || null : null;
  }
  function at(place) {
    const box = canvas.getBoundingClientRect();
    show(place, box.left + (place.x + 1) * size, box.top + (place.y + 0.5) * size);
  }
  canvas.addEventListener("pointermove", (event) => show(under(event), event.clientX, event.clientY));
  canvas.addEventListener("pointerdown", (event) => show(under(event), event.clientX, event.clientY));
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") tip.hidden = true; });
  canvas.addEventListener("blur", () => { tip.hidden = true; });
  canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) at(current || grid.get(xs[0] + " " + ys[0])); });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1], Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -Infinity], PageDown: [0, Infinity] };
    if (event.key === "Escape") { if (!tip.hidden) event.stopPropagation(); tip.hidden = true; return; }
    if (!(event.key in steps)) return;
    event.preventDefault();
    const from = current || grid.get(xs[0] + " " + ys[0]), [right, down] = steps[event.key], clamp = (k, list) => Math.max(0, Math.min(list.length - 1, k));
    const next = grid.get(xs[clamp(xs.indexOf(from.x) + right, xs)] + " " + ys[clamp(ys.indexOf(from.y) + down, ys)]);
    if (!next) return;
    keepInView(canvas.parentElement, next, size);
    at(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const zoom = (by) => { size = Math.max(6, Math.min(least, size * by)); draw(); };
  const find = h("input", { type: "text", size: 12, placeholder: picture.logical.map(() => "0").join(","), "aria-label": "Find the cell of a logical index", onchange: () => {
    const wantedAt = find.value.split(/[\s,]+/).filter(Boolean).map(Number);
    const inside = wantedAt.length === picture.logical.length && wantedAt.every((n, axis) => Number.isInteger(n) && n >= 0 && n < picture.logical[axis]);
    const number = inside ? flatten(wantedAt, picture.logical, wantedAt.map((_, axis) => axis)) : -1;
    const place = inside ? places.find((p) => (Array.isArray(p.holds) ? p.holds.includes(number) : p.holds === number)) : null;
    if (place) { keepInView(canvas.parentElement, place, size); at(place); }
    else readout.textContent = inside ? "the cell of [" + wantedAt.join(", ") + "] is not among those shown" : "a logical index has " + plural(picture.logical.length, "number", "numbers") + ", below [" + picture.logical.join(", ") + "]";
  } });
  draw();
  const complete = places.length === picture.total;
  const box = h("div", { class: "picture" }, canvas);
  return [h("div", { class: "bar" }, h("button", { type: "button", "aria-label": "Smaller cells", onclick: () => zoom(1 / 1.3) }, "−"),
    h("button", { type: "button", "aria-label": "Larger cells", onclick: () => zoom(1.3) }, "+"), h("label", {}, "find logical ", find)),
    box, readout, legend(picture, complete, places.length)];
}
function keepInView(box, place, size) {
  const x = place.x * size, y = place.y * size;
  if (x < box.scrollLeft) box.scrollLeft = x - size;
  if (x + 2 * size > box.scrollLeft + box.clientWidth) box.scrollLeft = x + 3 * size - box.clientWidth;
  if (y < box.scrollTop) box.scrollTop = y - size;
  if (y + 2 * size > box.scrollTop + box.clientHeight) box.scrollTop = y + 3 * size - box.clientHeight;
}
// Dots stand where indices of an axis are left out.
function elisions(pen, picture, size, colour) {
  pen.fillStyle = colour.soft;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = Math.min(18, size * 0.6) + "px system-ui, sans-serif";
  picture.levels.forEach((level) => {
    level.shown.forEach((at, k) => {
      if (k === 0 || at === level.shown[k - 1] + 1) return;
      const from = level.starts[k] - 0.45;
      if (level.right) pen.fillText("⋯", from * size, Math.min(picture.height, 1) * size * 0.5);
      else pen.fillText("⋮", Math.min(picture.width, 1) * size * 0.5, from * size);
    });
  });
}
function legend(picture, complete, number) {
  const kinds = new Set(picture.cells.map((holds) => (Array.isArray(holds) ? "clash" : holds < 0 ? "padding" : "cells")));
  return h("p", { class: "legend" },
    kinds.has("cells") && h("span", {}, h("span", { class: "swatch cells" }), "logical cells, first to last"),
    kinds.has("padding") && h("span", {}, h("span", { class: "swatch padding" }), "padding"),
    kinds.has("clash") && h("span", {}, h("span", { class: "swatch clash" }), "several logical indices meet: the map is not injective"),
    !complete && h("span", {}, comma(number) + " of " + comma(picture.total) + " cells shown: the first and the last of each axis"));
}
function layoutCard(layout) {
  const picture = layout.picture, list = (items) => "[" + items.join(", ") + "]";
  const facts = [];
  layout.steps.forEach((step, k) => facts.push([layout.steps.length > 1 ? "map " + (k + 1) : "map", h("code", {}, step.index_map)]));
  facts.push(["stored", list(layout.logical_shape) + " as " + list(layout.physical_shape)]);
  if (picture && Object.keys(picture.sizes).length) facts.push(["shown at", Object.entries(picture.sizes).map(([name, size]) => name + " = " + size).join(", ") + ", a small size, for this picture only"]);
  if (picture && picture.padding !== null) {
    facts.push(["padding", picture.padding ? comma(picture.padding) + " of " + comma(picture.total) + " cells (" + ((100 * picture.padding) / picture.total).toFixed(1) + "%)" : "none"]);
  }
  if (layout.predicate && layout.predicate !== "False" && layout.predicate !== "0") facts.push(["padding where", h("code", {}, layout.predicate)]);
  if (picture && picture.groups.length > 1) {
    const sizes = picture.groups.map((group) => group.reduce((size, axis) => size * picture.box[axis], 1)), last = sizes[sizes.length - 1];
    facts.push(["image", last / picture.channels + " × " + sizes[sizes.length - 2] + " texels of " + plural(picture.channels, "channel", "channels") + (sizes.length === 3 ? ", " + plural(sizes[0], "layer", "layers") : "")]);
  }
  if (picture) {
    const axes = (right) => picture.levels.map((level, axis) => [level, "p" + axis]).filter(([level]) => level.right === right && level.extent > 1).map(([, name]) => name).join(", ");
    facts.push(["axes", ["down: " + (axes(false) || "none"), "right: " + (axes(true) || "none")].join(" · ")]);
  }
  return h("article", { class: "card layout" },
    h("h3", {}, layout.buffer || "the map", layout.dtype && h("span", { class: "hint" }, " " + layout.dtype + (layout.scope && layout.scope !== "global" ? ", " + layout.scope : "")),
      layout.refused && [" ", h("span", { class: "badge refuted" }, "refused")]),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    picture ? canvasOf(layout) : h("p", { class: "hint" }, "No picture: no size was found that is small enough and meets the conditions on the symbols."));
}
