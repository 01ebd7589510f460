// Every program of the project in the TextMate grammar: nothing is illegal, and no string or comment is left open at the
// end. `npm test` runs this. Programs that the compiler's parser refuses are in tests/ui, which is left out.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// The modules lie beside this extension, or in a folder that the variable names.
const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(process.env.NODE_MODULES_FOLDER ?? dirname(here), "package.json"));
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const path = join(here, "../syntaxes/impala.tmLanguage.json");
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(path, "utf8"), path),
});
const grammar = await registry.loadGrammar("source.impala");

const root = join(here, "../../..");
const files = ["bench", "crates", "docs", "examples", "lib", "tests"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, name))
    .filter((name) => name.endsWith(".impala") && !name.includes("node_modules")),
);
let faults = 0;
let checked = 0;
for (const file of files) {
  if (file.startsWith(join("tests", "ui"))) {
    continue;
  }
  checked += 1;
  let stack = textmate.INITIAL;
  readFileSync(join(root, file), "utf8").split("\n").forEach((line, i) => {
    const result = grammar.tokenizeLine(line, stack);
    stack = result.ruleStack;
    for (const token of result.tokens) {
      if (token.scopes.some((scope) => scope.startsWith("invalid"))) {
        faults += 1;
        console.log(`${file}:${i + 1}:${token.startIndex + 1}: ${JSON.stringify(line.slice(token.startIndex, token.endIndex))}`);
      }
    }
  });
  if (stack.depth > 1) {
    faults += 1;
    console.log(`${file}: something is left open at the end`);
  }
}
if (checked < 400) {
  faults += 1;
}
console.log(`${checked} files, ${faults} faults`);
process.exit(faults === 0 ? 0 : 1);
