// Prints the pages that the search of the built site finds, the first ones first, as JSON: by its own index and code.
//
// node docs/tools/search.mjs SITE "how long" "citing a number"
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SHOWN = 5;
const [site, ...questions] = process.argv.slice(2);
const bundle = join(site, "search");
const text = (...names) => readFile(join(...names), "utf-8");

globalThis.fetch = async (address) => {  // the index is read from the folder, not from a server
  const file = String(address).split("?")[0];
  return new Response(await readFile(file.startsWith("file:") ? fileURLToPath(file) : file));
};
const code = Buffer.from(await text(bundle, "pagefind.js")).toString("base64");  // Node takes a .js file for a script
const search = await import(`data:text/javascript;base64,${code}`);
const [, config] = (await text(site, "index.html")).match(/"__config" type="application\/json">(.*?)<\/script>/s);
await search.options({ ...JSON.parse(config).search.options.searchOptions, basePath: `${bundle}/`, baseUrl: "/" });
await search.init();
const answers = {};
for (const question of questions) {
  const { results } = await search.search(question);
  const pages = await Promise.all(results.slice(0, SHOWN).map((result) => result.data()));
  answers[question] = pages.map((page) => page.url.replace(/index\.html$/, ""));
}
console.log(JSON.stringify(answers));
