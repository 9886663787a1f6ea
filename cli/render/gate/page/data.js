// What the page holds, read piece by piece: an item's part is parsed when it is opened.
const parsed = new Map();
function piece(id) {
  if (!parsed.has(id)) parsed.set(id, JSON.parse(document.getElementById(id).textContent));
  return parsed.get(id);
}
const index = piece("index");
const FIELDS = ["name", "kind", "verdict", "fails", "codes", "steps", "seconds", "cached", "sub", "place", "body"];
const rows = index.rows.map((values, number) => {
  const row = { number };
  FIELDS.forEach((field, k) => { row[field] = values[k]; });
  row.codes = row.codes.map((k) => index.codes[k]);
  return row;
});
function within(starts, prefix, number) {
  let low = 0, high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= number) low = middle; else high = middle - 1;
  }
  return piece(prefix + low)[number - starts[low]];
}
const body = (row) => within(index.bodies, "body", row.body);
const shared = (number) => within(index.shared, "shared", number);
const lineText = (number) => within(index.lines, "lines", number);

// Elements are made of text, never of markup.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}
const comma = (number) => number.toLocaleString("en-US");
const plural = (number, one, many) => comma(number) + " " + (number === 1 ? one : many);
const duration = (seconds) => (seconds < 1 ? (seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0) + " ms" : seconds.toFixed(1) + " s");
const badge = (word) => h("span", { class: "badge " + word }, word);
const codeLink = (code) =>
  document.getElementById("code-" + code)
    ? h("a", { class: "code", href: "#code-" + code, onclick: (event) => { event.preventDefault(); explain(code); } }, code)
    : h("span", { class: "code" }, code);
function explain(code) {
  const meaning = document.getElementById("code-" + code).cloneNode(true);
  meaning.removeAttribute("id");
  const dialog = h("dialog", { "aria-label": "What " + code + " means" }, 
    h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close"), meaning);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}
