// The page's side: the form, the answer, and a worker with Python in it, which can be ended.
const at = (id) => document.getElementById(id);
const FIELDS = ["map", "shape", "where", "other"];
const EXAMPLES = {
  "a row of 14 in fours": { map: "lambda i: [i//4, i%4]", shape: "14" },
  "NHWC to NCHW4c, for all sizes": { map: "NHWC->NCHW4c", shape: "n, h, w, c" },
  "two indices in one cell": { map: "lambda i, j: [i, j//2]", shape: "4, 6" },
  "a swizzle of 8 x 8": { map: "lambda i, j: [i, j ^ (i % 8)]", shape: "8, 8" },
  "a layout of CuTe": { map: "(4,(2,4)):(2,(1,8))" },
  "a layout string and a lambda": {
    map: "NHWC->NCHW4c", shape: "2, 8, 8, 16", other: "lambda n, h, w, c: [n, c//4, h, w, c%4]",
  },
  "rows and columns": { map: "lambda i, j: [i, j]", shape: "4, 8", other: "lambda i, j: [j, i]" },
};

let worker = null;
let number = 0;

function say(status, text) {
  at("status").className = status;
  at("status").textContent = text;
  document.body.dataset.state = status;
}

function start() {
  at("ask").disabled = true;
  say("loading", "loading Python ...");
  worker = new Worker("worker.mjs", { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.ready) {
      at("ask").disabled = false;
      say("ready", data.ready);
    } else if (data.failed) {
      say("error", data.failed);
    } else if (data.number === number) {
      show(JSON.parse(data.answer));
    }
  };
  worker.onerror = (event) => say("error", event.message || "Python could not be loaded");
}

function show(answer) {
  at("ask").disabled = false;
  at("stop").disabled = true;
  at("rows").replaceChildren(...answer.rows.map(([label, text]) => {
    const row = document.createElement("tr");
    for (const [kind, words] of [["th", label], ["td", text]]) {
      row.appendChild(document.createElement(kind)).textContent = words;
    }
    return row;
  }));
  const words = { needs: "not decided here", error: "the question cannot be read" };
  at("picture").innerHTML = answer.picture || "";
  at("command").textContent = answer.command;
  at("same").hidden = answer.status === "error";
  say(answer.status, words[answer.status] || answer.status);
}

function ask() {
  const question = Object.fromEntries(FIELDS.map((id) => [id, at(id).value]));
  history.replaceState(null, "", "#" + new URLSearchParams(question));
  number += 1;
  at("ask").disabled = true;
  at("stop").disabled = false;
  say("asking", "...");
  worker.postMessage({ number, question: JSON.stringify(question) });
}

function fill(values) {
  for (const id of FIELDS) at(id).value = values[id] || "";
}

at("question").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
at("stop").addEventListener("click", () => { worker.terminate(); number += 1; at("stop").disabled = true; start(); });
at("examples").append(...Object.keys(EXAMPLES).map((name) => new Option(name)));
at("examples").addEventListener("change", () => {
  const chosen = EXAMPLES[at("examples").value];
  if (chosen) { fill(chosen); if (!at("ask").disabled) ask(); }
});
if (location.hash.length > 1) fill(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
start();
