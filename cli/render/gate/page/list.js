// The list of items: filtered, sorted, and drawn only where it is seen.
const ROW = 52;
const TAIL = 22; // characters of a name that are always seen: they tell lines and cases apart
const WORST = ["refuted", "error", "unknown", "vacuous", "proved"];
const SORTS = {
  "failing first": (a, b) => b.fails - a.fails || WORST.indexOf(a.verdict) - WORST.indexOf(b.verdict) || a.number - b.number,
  "as given": (a, b) => a.number - b.number,
  "by name": (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.number - b.number),
  "slowest first": (a, b) => b.seconds - a.seconds || a.number - b.number,
  "most steps first": (a, b) => b.steps - a.steps || a.number - b.number,
};
const wanted = { text: "", verdicts: new Set(), fails: false, kind: "", code: "", sort: "failing first" };
let shown = [];
let picked = null;
let list, filler, count;
rows.forEach((row) => { row.haystack = [row.name, row.sub, row.place, row.verdict, row.kind, ...row.codes].join("\n").toLowerCase(); });

function matching() {
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) =>
    (!wanted.fails || row.fails) && (!wanted.verdicts.size || wanted.verdicts.has(row.verdict)) && (!wanted.kind || row.kind === wanted.kind) &&
    (!wanted.code || row.codes.includes(wanted.code)) && words.every((word) => row.haystack.includes(word)));
}
function refresh() {
  shown = matching().sort(SORTS[wanted.sort]);
  filler.style.height = shown.length * ROW + "px";
  count.textContent = shown.length === rows.length ? plural(rows.length, "item", "items") : comma(shown.length) + " of " + plural(rows.length, "item", "items");
  ["passed", "failed"].forEach((word, k) => { if (index.left_out[k]) count.textContent += "; " + comma(index.left_out[k]) + " more " + word + " and are only counted"; });
  list.scrollTop = 0;
  drawRows();
}
function drawRows() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 6);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 6);
  const fresh = [];
  for (let k = first; k < last; k++) fresh.push(oneRow(shown[k], k));
  filler.replaceChildren(...fresh);
  const at = document.getElementById("row-picked");
  if (at) list.setAttribute("aria-activedescendant", at.id); else list.removeAttribute("aria-activedescendant");
}
function oneRow(row, k) {
  const chosen = row === picked;
  const element = h("div", {
    class: "row" + (row.fails ? " fails" : "") + (chosen ? " picked" : ""), role: "option", id: chosen ? "row-picked" : null,
    "aria-selected": chosen ? "true" : "false", "aria-posinset": k + 1, "aria-setsize": shown.length, title: row.name,
    onclick: () => open(row),
  }, h("div", { class: "name" }, h("span", { class: "begins" }, row.name.slice(0, -TAIL)), h("span", { class: "ends" }, row.name.slice(-TAIL)), badge(row.verdict)), h("div", { class: "sub" }, row.sub || plural(row.steps, "step", "steps")));
  element.style.top = k * ROW + "px";
  return element;
}
function move(by) {
  if (!shown.length) return;
  const at = shown.indexOf(picked);
  open(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.max(0, Math.min(shown.length - 1, at + by))], false);
}
function reveal() {
  const at = shown.indexOf(picked);
  if (at < 0) return;
  if (at * ROW < list.scrollTop) list.scrollTop = at * ROW;
  else if ((at + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * ROW - list.clientHeight;
}
function select(label, options, change) {
  return h("select", { "aria-label": label, onchange: (event) => { change(event.target.value); refresh(); } },
    options.map(([value, text]) => h("option", { value }, text)));
}
function toggle(text, pressed, change, classes) {
  const button = h("button", { type: "button", "aria-pressed": String(pressed), class: classes || null, onclick: () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    change(now);
  } }, text);
  return button;
}
function makeSide() {
  const tally = {};
  rows.forEach((row) => { tally[row.verdict] = (tally[row.verdict] || 0) + 1; });
  const failing = rows.filter((row) => row.fails).length;
  const search = h("input", { type: "search", id: "search", placeholder: "Search names, messages, codes  ( / )", "aria-label": "Search",
    oninput: () => { wanted.text = search.value; refresh(); } });
  const kinds = [...new Set(rows.map((row) => row.kind))].sort();
  const controls = h("div", { class: "controls", role: "search" }, search,
    h("div", { class: "chips", role: "group", "aria-label": "Show only" },
      failing > 0 && toggle(comma(failing) + " failing", false, (on) => { wanted.fails = on; refresh(); }),
      WORST.filter((word) => tally[word]).map((word) => toggle(comma(tally[word]) + " " + word, false, (on) => {
        if (on) wanted.verdicts.add(word); else wanted.verdicts.delete(word);
        refresh();
      }, word))),
    select("Sort", Object.keys(SORTS).filter((name) => name !== "slowest first" || rows.some((row) => row.seconds > 0)).map((name) => [name, name]),
      (value) => { wanted.sort = value; }),
    index.codes.length > 0 && select("Code", [["", "any code"], ...index.codes.slice().sort().map((code) => [code, code])], (value) => { wanted.code = value; }),
    kinds.length > 1 && select("Kind", [["", "any kind"], ...kinds.map((kind) => [kind, kind + "s"])], (value) => { wanted.kind = value; }));
  count = h("p", { class: "count", role: "status" });
  filler = h("div", { role: "presentation" });
  filler.style.position = "relative";
  list = h("div", { id: "list", role: "listbox", tabindex: "0", "aria-label": "Items", onscroll: drawRows, onkeydown: (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) { event.preventDefault(); move(steps[event.key]); }
    else if (event.key === "Enter" && picked) { event.preventDefault(); open(picked); document.getElementById("pane").focus(); }
  } }, filler);
  return h("nav", { id: "side", "aria-label": "Items" }, controls, count, list);
}
