const input = document.querySelector("input");
const list = document.querySelector(".found");
const MOST = 50;
let at = 0;

// How well a name fits, less is better; -1 if it does not.
function fit([name, module, , , summary], words) {
  let total = 0;
  for (const word of words) {
    const lower = name.toLowerCase();
    const place = lower.indexOf(word);
    if (lower === word) total += 0;
    else if (place === 0) total += 1;
    else if (place > 0) total += 2;
    else if (module.toLowerCase().includes(word)) total += 3;
    else if (summary.toLowerCase().includes(word)) total += 4;
    else return -1;
  }
  return total;
}

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
  const hits = [];
  if (words.length) {
    for (const entry of NAMES) {
      const value = fit(entry, words);
      if (value >= 0) hits.push([value, entry]);
    }
  }
  hits.sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length);
  list.replaceChildren(...hits.slice(0, MOST).map(([, [name, module, kind, href, summary]]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = href;
    link.append(name);
    link.addEventListener("click", () => { input.value = ""; show(); });
    const what = document.createElement("small");
    what.append(` ${kind}${module ? " of " + module : ""}. ${summary}`);
    item.append(link, what);
    return item;
  }));
  if (words.length && !hits.length) list.append("Nothing is named so.");
  list.classList.toggle("open", words.length > 0);
  at = 0;
  mark();
}

function mark() {
  [...list.children].forEach((item, i) => item.classList.toggle("on", i === at));
  list.children[at]?.scrollIntoView({ block: "nearest" });
}

input.addEventListener("input", show);
input.addEventListener("keydown", e => {
  const n = list.children.length;
  if (e.key === "Escape") { input.value = ""; show(); }
  else if (e.key === "Enter") list.children[at]?.querySelector("a")?.click();
  else if (n && e.key === "ArrowDown") { at = (at + 1) % n; mark(); e.preventDefault(); }
  else if (n && e.key === "ArrowUp") { at = (at + n - 1) % n; mark(); e.preventDefault(); }
});
document.addEventListener("keydown", e => {
  if (e.key === "/" && document.activeElement !== input) { input.focus(); e.preventDefault(); }
});
