// Python, with the package from the archive beside this file. numpy is loaded where Pyodide's folder has it.
const PYODIDE = new URL("PYODIDE_FOLDER", import.meta.url).href;

async function started() {
  const { loadPyodide } = await import(`${PYODIDE}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: PYODIDE });
  const loaded = await python.loadPackage("numpy", { messageCallback: () => {}, errorCallback: () => {} })
    .then((found) => found.some((each) => each.name === "numpy"), () => false);
  const archive = await fetch(new URL("layoutproof.zip", import.meta.url));
  if (!archive.ok) throw new Error(`layoutproof.zip: ${archive.status}`);
  python.unpackArchive(await archive.arrayBuffer(), "zip");
  const module = python.pyimport("layoutproof.cli.playground");
  const version = python.runPython("import sys; sys.version.split()[0]");
  return { module, told: `ready: Python ${version}, ${loaded ? "with numpy" : "without numpy"}` };
}

const python = started();
python.then(({ told }) => postMessage({ ready: told }), (problem) => postMessage({ failed: String(problem) }));

onmessage = async ({ data }) => {
  const { module } = await python;
  try {
    postMessage({ number: data.number, answer: module.answer(data.question) });
  } catch (problem) {
    const rows = [["fault", `${problem}`.trim().split("\n").pop()]];
    postMessage({ number: data.number, answer: JSON.stringify({ status: "error", rows, picture: null, command: "" }) });
  }
};
