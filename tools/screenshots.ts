// `npm run screenshots`: the pictures of the docs, from stories, each with its accessible tree beside it.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openBrowser } from "#test/browser/chromium.ts"
import { pictures } from "#test/browser/pictures.ts"
import { serveFolder } from "#test/browser/serve.ts"
import { pageFolder } from "./dashboard.ts"
import { repository } from "./kube/folders.ts"

const folder = join(repository, "docs/pictures")
const served = await serveFolder(await pageFolder(undefined, { stories: true }))
const browser = await openBrowser()
mkdirSync(folder, { recursive: true })
for (const { name, story, colorScheme } of pictures) {
  const page = await browser.newPage({ viewport: { width: 1080, height: 520 }, colorScheme, reducedMotion: "reduce" })
  await page.goto(`${served.address}?story=${encodeURIComponent(story)}`)
  await page.locator("main, dialog").first().waitFor()
  await page.getByText("Asking").waitFor({ state: "hidden" })
  writeFileSync(join(folder, `${name}.yaml`), `${await page.locator("body").ariaSnapshot()}\n`)
  await page.screenshot({ path: join(folder, `${name}.png`) })
  await page.close()
  process.stdout.write(`docs/pictures/${name}.png\n`)
}
await browser.close()
await served.close()
