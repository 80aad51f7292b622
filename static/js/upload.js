// Handing in a file: drop it anywhere on the page, or choose it; bytes sent and time left are told, and it can be stopped.
//
// <form data-upload data-limit="512"> with a file input. Without this module it is a plain form. The server answers with
// {"url": …} when the file is kept, or {"error": …}.

const MB = 1024 * 1024;
let request = null;
let began = 0;

const form = () => document.querySelector("form[data-upload]");
const part = (name) => form()?.querySelector(`[data-upload-${name}]`);

function sizeText(bytes) {
  if (bytes < MB) return `${Math.max(1, Math.round(bytes / 1024))} KB`;
  return `${(bytes / MB).toFixed(bytes < 10 * MB ? 1 : 0)} MB`;
}

function timeText(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.round(seconds / 60)} min`;
}

function tell(sentence) {
  const error = part("error");
  error.textContent = sentence;
  error.hidden = !sentence;
}

function settle() {
  request = null;
  part("progress").hidden = true;
  const stop = part("stop");
  if (stop) stop.hidden = true;
}

function progress(event) {
  const status = part("status");
  if (!status || !event.lengthComputable) return;
  part("progress").querySelector("progress").value = event.loaded / event.total;
  const seconds = (performance.now() - began) / 1000;
  const left = (event.total - event.loaded) / (event.loaded / seconds);
  const sent = `${sizeText(event.loaded)} of ${sizeText(event.total)} sent`;
  if (event.loaded === event.total) status.textContent = "All sent. The file is being stored.";
  else status.textContent = seconds > 1 ? `${sent}, about ${timeText(left)} left` : sent;
}

function answered(answer) {
  if (answer?.url) {
    location.assign(answer.url);
    return;
  }
  settle();
  tell(answer?.error || "The upload was not taken. Nothing was stored; reload the page and try again.");
}

function send(file) {
  const target = form();
  if (!target || request) return;
  const limit = Number(target.dataset.limit) || Infinity;
  if (file.size > limit * MB) {
    tell(`The file has ${sizeText(file.size)}; at most ${limit} MB can be uploaded. Pack it with gzip, or split it.`);
    return;
  }
  tell("");
  const body = new FormData(target);
  body.set("file", file, file.name);
  part("name").textContent = file.name;
  part("note").textContent = sizeText(file.size);
  part("progress").hidden = false;
  const stop = part("stop");
  if (stop) stop.hidden = false;
  began = performance.now();
  request = new XMLHttpRequest();
  request.open("POST", target.action);
  request.setRequestHeader("X-Requested-With", "upload");
  request.responseType = "json";
  request.upload.addEventListener("progress", progress);
  request.addEventListener("load", () => answered(request.response));
  request.addEventListener("error", () => answered({ error: "The connection broke. Nothing was stored; try again." }));
  request.addEventListener("abort", () => answered({ error: "Stopped. Nothing was stored." }));
  request.send(body);
}

function holdsFiles(event) {
  return event.dataTransfer && [...event.dataTransfer.types].includes("Files");
}

let depth = 0;

function hang(by) {
  depth = Math.max(0, depth + by);
  document.body.classList.toggle("dropping", depth > 0 && Boolean(form()));
}

addEventListener("dragenter", (event) => { if (holdsFiles(event)) hang(1); });
addEventListener("dragleave", (event) => { if (holdsFiles(event)) hang(-1); });
addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  depth = 0;
  hang(0);
  const [file, second] = event.dataTransfer.files;
  if (second) tell("One file at a time: a knowledge base is one file.");
  else if (file) send(file);
});

// The listeners sit on the document, because the check page replaces its form while the file is read.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-upload] input[type=file]") && event.target.files.length) send(event.target.files[0]);
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-upload-stop]")) request?.abort();
  const pick = event.target.closest("[data-upload-pick]");
  if (pick) {
    event.preventDefault();
    part("input").click();
  }
});
document.addEventListener("submit", (event) => {
  const file = event.target.matches("form[data-upload]") && event.target.querySelector("input[type=file]").files[0];
  if (file) {
    event.preventDefault();
    send(file);
  }
}, { capture: true });
