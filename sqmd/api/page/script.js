"use strict";
// What comes from the server is put into the page as text, never as markup: see `element`.

const API = "/api/v1";
const KEY = "sqmd-key";
const TYPING_MS = 200; // so long nothing is typed before a search
const RESULTS = 20;
const SNIPPET = 300; // characters
const LINES = 4000; // of a file, around the place, that are shown
const PAGE = 1000; // files

const find = (id) => document.getElementById(id);
const query = find("query");
const folder = find("folder");
const mode = find("mode");
const results = find("results");
const message = find("message");
const viewer = find("viewer");

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children); // strings become text nodes
  return made;
}

// Talking to the server.

class Refused extends Error {}

async function ask(path, options = {}) {
  const headers = { Accept: "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) {
    // A header holds bytes: those of the key in UTF-8.
    headers.Authorization = `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}`;
  }
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(API + path, { ...options, headers, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is it still running?");
  }
  if (reply.status === 401) {
    askForKey(key !== null);
    throw new Refused("");
  }
  if (!reply.ok) {
    const problem = await reply.json().catch(() => ({}));
    throw new Refused(problem.message || `The server answered ${reply.status}.`);
  }
  return reply;
}

function askForKey(wasWrong) {
  sessionStorage.removeItem(KEY);
  const form = find("key-form");
  if (wasWrong) find("key-hint").textContent = "That was not the API key.";
  find("search-form").hidden = true;
  if (form.hidden) {
    form.hidden = false;
    find("key").focus();
  }
}

find("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, find("key").value);
  find("key").value = "";
  find("key-form").hidden = true;
  find("search-form").hidden = false;
  query.focus();
  start();
});

function tell(text, failed = false) {
  message.textContent = text;
  message.classList.toggle("failed", failed);
}

// Searching.

let waiting = 0;
let asking = new AbortController();

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(search, TYPING_MS);
}

async function search() {
  clearTimeout(waiting);
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const wanted = query.value.trim();
  if (!wanted) {
    results.replaceChildren();
    tell("");
    return;
  }
  try {
    const body = JSON.stringify({ query: wanted, mode: mode.value, filter_path: folder.value.trim(), top_k: RESULTS });
    const reply = await ask("/search", { method: "POST", body, signal });
    const found = await reply.json();
    if (signal.aborted) return;
    show(found);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    results.replaceChildren();
    tell(error.message, true);
  }
}

function show(found) {
  const words = wordsOf(found.query);
  results.replaceChildren(...found.results.map((result) => element("li", "", card(result, words))));
  const counted = found.total === 1 ? "1 result" : `${found.total || "No"} results`;
  tell(`${counted} in ${Math.round(found.duration_ms)} ms.${found.note ? ` ${found.note}` : ""}`);
}

function card(result, words) {
  const lines = lineRange(result);
  const button = element(
    "button",
    "",
    element("span", "crumb", result.heading_path || nameOf(result.file_path)),
    element("span", "place", `${result.file_path} · ${lines} · ${result.score.toFixed(3)}`),
    element("span", "snippet", ...highlighted(excerpt(result.text_raw, words), words)),
  );
  button.type = "button";
  button.addEventListener("click", () => open(result, words));
  return button;
}

function lineRange(result) {
  return result.line_start === result.line_end
    ? `line ${result.line_start}`
    : `lines ${result.line_start}–${result.line_end}`;
}

function nameOf(path) {
  return path.split(/[/\\]/).pop();
}

// The words of a query as patterns, the longest first, which says most; a letter or two only where there is no more.
function wordsOf(text) {
  const words = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}_]+/gu) || [])];
  const long = words.filter((word) => !/^[\x00-\x7f]{1,2}$/.test(word));
  const most = (long.length ? long : words).sort((one, other) => other.length - one.length).slice(0, 100);
  // Letters, digits and marks alone: nothing in them is special in a pattern. A short Latin word counts as a whole.
  return most.map((word) => (/^[\x00-\x7f]{1,3}$/.test(word) ? `(?<![\\p{L}\\p{N}])${word}(?![\\p{L}\\p{N}])` : word));
}

// The part of a text around the first of the words that it holds.
function excerpt(text, words) {
  const places = words.map((word) => text.search(new RegExp(word, "iu")));
  const first = places.find((place) => place >= 0) || 0;
  let start = Math.max(0, first - SNIPPET / 3);
  if (start) start = Math.max(start, text.indexOf(" ", start) + 1); // not within a word
  if (start > first) start = first;
  const shown = text.slice(start, start + SNIPPET).trim();
  return (start ? "… " : "") + shown + (start + SNIPPET < text.length ? " …" : "");
}

function highlighted(text, words) {
  if (!words.length) return [text];
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(new RegExp(words.join("|"), "giu"))) {
    parts.push(text.slice(end, match.index), element("mark", "", match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

// Reading a file.

async function open(result, words) {
  let text;
  try {
    const reply = await ask(`/documents/${encodeURIComponent(result.file_id)}/raw`);
    text = await reply.text();
  } catch (error) {
    tell(error.message, true);
    return;
  }
  const lines = text.split("\n");
  const at = Math.min(result.line_start, lines.length); // the file may have become shorter since
  const from = Math.max(0, at - 1 - LINES / 2);
  const some = lines.slice(from, from + LINES);
  find("viewer-title").textContent = result.file_path;
  find("viewer-note").textContent =
    some.length < lines.length ? `Lines ${from + 1} to ${from + some.length} of ${lines.length} are shown.` : "";
  const rows = some.map((line, index) => {
    const number = from + index + 1;
    const isHere = number >= result.line_start && number <= result.line_end;
    const row = element(
      "div",
      isHere ? "line here" : "line",
      element("span", "number", String(number)),
      element("span", "", ...(isHere ? highlighted(line, words) : [line || " "])),
    );
    row.dataset.line = String(number);
    return row;
  });
  find("lines").replaceChildren(...rows);
  viewer.showModal();
  rows[at - 1 - from].scrollIntoView({ block: "center" });
  find("lines").focus({ preventScroll: true });
}

find("close").addEventListener("click", () => viewer.close());
viewer.addEventListener("close", () => find("lines").replaceChildren());
viewer.addEventListener("click", (event) => {
  if (event.target === viewer) viewer.close();
});

// Keys.

document.addEventListener("keydown", (event) => {
  if (viewer.open || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const active = document.activeElement;
  if (event.key === "/" && !["INPUT", "SELECT"].includes(active.tagName)) {
    event.preventDefault();
    query.focus();
    query.select();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const cards = [...results.querySelectorAll("button")];
  const at = cards.indexOf(active);
  if (!step || (at < 0 && active !== query)) return;
  const next = at + step;
  if (next >= cards.length || (at < 0 && step < 0)) return;
  event.preventDefault();
  (next < 0 ? query : cards[next]).focus();
});

query.addEventListener("input", (event) => event.isComposing || soon());
query.addEventListener("compositionend", soon);
folder.addEventListener("input", soon);
mode.addEventListener("change", search);
find("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});

// The index.

let vectorsBefore = null;
let looking = 0;

async function look() {
  clearTimeout(looking);
  let wait = 5000;
  if (!document.hidden) {
    try {
      const status = await (await ask("/index/status")).json();
      const { jobs } = await (await ask("/index/jobs")).json();
      wait = showIndex(status, jobs) ? 1000 : 5000;
    } catch (error) {
      if (error.message) find("state").textContent = error.message;
      else return; // the key is asked for first
    }
  }
  looking = setTimeout(look, wait);
}

// Whether something is going on.
function showIndex(status, jobs) {
  const job = jobs.find((each) => each.status === "running" || each.status === "queued");
  const growing = vectorsBefore !== null && status.vectorCount !== vectorsBefore;
  vectorsBefore = status.vectorCount;
  const parts = [];
  if (!status.chunkCount && !job) parts.push("Nothing is indexed yet");
  else parts.push(`${count(status.fileCount, "file")}, ${count(status.chunkCount, "chunk")}`);
  if (status.vectorCount < status.chunkCount) parts.push(`${status.vectorCount} of them searchable by meaning`);
  if (status.watcherRunning) parts.push("watching for changes");
  const bar = find("progress");
  bar.hidden = !job && !growing;
  let [done, total] = [status.vectorCount, status.chunkCount];
  if (job) {
    [done, total] = [job.progress.done, job.progress.total];
    const what = job.progress.phase === "text" ? "reading files" : "computing vectors";
    parts.push(total ? `${what}: ${done} of ${total}` : "indexing");
  } else if (jobs.length && jobs[0].status === "failed") {
    parts.push(jobs[0].message);
  } else if (jobs.length && jobs[0].errors) {
    parts.push(`${count(jobs[0].errors, "file")} could not be read: see sqmd status`);
  }
  if (total) {
    bar.max = total;
    bar.value = done;
  } else {
    bar.removeAttribute("value");
  }
  const said = `${parts.join(" · ")}.`.replace(/\.\.$/, ".");
  // Said again only when it differs: screen readers read it out.
  if (find("state").textContent !== said) find("state").textContent = said;
  find("update").disabled = Boolean(job);
  return Boolean(job) || growing;
}

function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

// All folders of the index, page by page, whenever somebody is about to choose one.
let listing = false;

async function listFolders() {
  if (listing) return;
  listing = true;
  try {
    const folders = new Set();
    for (let offset = 0, total = 1; offset < total; offset += PAGE) {
      const page = await (await ask(`/documents?limit=${PAGE}&offset=${offset}`)).json();
      total = page.total;
      for (const each of page.documents) folders.add(each.file_path.replace(/[^/\\]*$/, ""));
    }
    const options = [...folders].sort().map((path) => {
      const option = element("option", "");
      option.value = path;
      return option;
    });
    find("folders").replaceChildren(...options);
  } catch {
    // Without them a folder is typed.
  } finally {
    listing = false;
  }
}
folder.addEventListener("focus", listFolders);

find("update").addEventListener("click", async () => {
  try {
    await ask("/index/trigger", { method: "POST", body: "{}" });
    look();
  } catch (error) {
    tell(error.message, true);
  }
});
document.addEventListener("visibilitychange", () => document.hidden || look());

function start() {
  look();
  search();
}
start();
