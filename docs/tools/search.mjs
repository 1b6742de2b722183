// Prints the pages that the search of the built site finds, the first ones first, as JSON: by its own index and code.
//
// node docs/tools/search.mjs SITE "how long" "citing a number"
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const SHOWN = 5;
const [site, ...questions] = process.argv.slice(2);
const bundle = join(site, "search");

globalThis.fetch = async (address) => {  // the index is read from the folder, not from a server
  const file = String(address).split("?")[0];
  return new Response(await readFile(file.startsWith("file:") ? fileURLToPath(file) : file));
};
// A .js file is no module to Node: its text is.
const code = (await readFile(join(bundle, "pagefind.js"), "utf-8")).replaceAll("import.meta.url", JSON.stringify(pathToFileURL(join(bundle, "pagefind.js")).href));
const search = await import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
await search.options({ basePath: `${bundle}/`, baseUrl: "/" });
await search.init();
const found = {};
for (const question of questions) {
  const { results } = await search.search(question);
  const pages = await Promise.all(results.slice(0, SHOWN).map((result) => result.data()));
  found[question] = pages.map((page) => page.url);
}
console.log(JSON.stringify(found));
process.exit(0);
