// The whole: overview, list, one item; the address says which, so that a link can be passed on.
const pane = h("main", { id: "pane", tabindex: "-1" });
const glance = document.querySelector(".glance"); // of the page without a script, moved to the overview
function overview() {
  const failing = rows.filter((row) => row.fails);
  const byCode = new Map();
  for (const row of failing) for (const code of row.codes) { if (!byCode.has(code)) byCode.set(code, []); byCode.get(code).push(row); }
  const order = [...byCode.entries()].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const FEW = 5;
  return [glance, h("div", { class: "title" }, h("h2", {}, failing.length ? "What fails, by code" : "Nothing fails")),
    order.map(([code, found]) => h("article", { class: "card" },
      h("h3", {}, codeLink(code), " ", index.sentences[code] || ""),
      h("ul", {}, found.slice(0, FEW).map((row) => h("li", {}, badge(row.verdict), " ", h("a", { href: "#item=" + row.number }, row.name), h("div", { class: "hint" }, row.sub.replace(code + " ", ""))))),
      found.length > FEW && h("button", { type: "button", onclick: () => { byCodeOnly(code); } }, "all " + comma(found.length) + " in the list"))),
    !failing.length && h("p", {}, "Choose an item on the left to see its steps, programs and layouts."),
    h("p", { class: "hint" }, "Keys: / searches, j and k go to the next and the previous item, f to the next that fails, Escape comes back here.")];
}
function byCodeOnly(code) {
  const choice = document.querySelector('select[aria-label="Code"]');
  choice.value = code;
  wanted.code = code;
  refresh();
  list.focus();
}
function draw(move) {
  tip.hidden = true;
  document.body.classList.toggle("showing-item", picked !== null);
  pane.replaceChildren(...(picked ? itemView(picked) : overview()).flat(Infinity).filter(Boolean));
  pane.scrollTop = 0;
  drawRows();
  if (move) pane.focus({ preventScroll: true });
}
function open(row) {
  picked = row;
  reveal();
  const address = "#item=" + row.number;
  if (location.hash !== address) history.replaceState(null, "", address);
  draw(false);
}
function close() {
  picked = null;
  history.replaceState(null, "", "#");
  draw(false);
}
function fromAddress() {
  const found = /^#item=(\d+)$/.exec(location.hash);
  picked = found ? rows[Number(found[1])] || null : null;
  reveal();
  draw(false);
}
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("search").focus(); }
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "f") {
    const fails = shown.filter((row) => row.fails), at = shown.indexOf(picked);
    const next = fails.find((row) => shown.indexOf(row) > at) || fails[0];
    if (next) open(next);
  } else if (event.key === "Escape" && tip.hidden && picked) { close(); list.focus(); }
});
document.body.classList.add("scripted");
const app = document.getElementById("app");
app.append(makeSide(), pane);
app.hidden = false;
document.body.append(tip);
refresh();
if (!location.hash && rows.length === 1) open(rows[0]); else fromAddress();
window.addEventListener("hashchange", fromAddress);
window.addEventListener("resize", drawRows);
