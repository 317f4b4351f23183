import { readFileSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { AxeResults } from "axe-core"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { pageFolder } from "#tools/dashboard.ts"
import { repository } from "#tools/kube/folders.ts"
import { listen, openBrowser } from "./chromium.ts"
import { pictures } from "./pictures.ts"
import { cellsByColour, cellsByState } from "./pixels.ts"
import { serveFolder } from "./serve.ts"

// Every part of the page in every state, without a server: what it says to a reader of the screen is kept as a golden
// file (`npm run test:browser -- stories -u` writes it), and axe looks for barriers in both themes.

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
const golden = join(repository, "test/golden/dashboard")
const served = await serveFolder(await pageFolder(undefined, { stories: true }))
const names = storyNames()
let browser: Browser
let page: Page
/** What the console said since the story was opened. */
let said: string[]

beforeAll(async () => {
  browser = await openBrowser()
  page = await browser.newPage()
  said = listen(page)
})
afterAll(async () => {
  await browser?.close()
  await served.close()
})

/** As the source has them: a name for each test must be known before a browser runs. */
function storyNames(): string[] {
  const kinds = ["rollout", "source", "canary", "workload", "pull", "recreate", "plain"]
  const files = kinds.map(kind => ({ of: kind, file: `kinds/${kind}/stories.tsx` }))
  return [{ of: "page", file: "page-stories.tsx" }, ...files].flatMap(({ of, file }) => {
    const text = readFileSync(join(repository, "src/dashboard", file), "utf8")
    const own = text.slice(text.indexOf("export const stories"))
    return [...own.matchAll(/^ {2}"?([\w, -]+?)"?: \(\) => [(<]/gm)].map(([, name]) => `${of}: ${name}`)
  })
}

type Screen = { colorScheme?: "light" | "dark"; forcedColors?: "active" | "none" }

/** Shows a story in the one tab of these tests: to open another takes longer than most of them. */
async function open(story: string, { colorScheme = "light", forcedColors = "none" }: Screen = {}): Promise<void> {
  said.length = 0
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme, forcedColors, reducedMotion: "reduce" })
  await page.goto(`${served.address}?story=${encodeURIComponent(story)}`)
  await page.locator("main, dialog").first().waitFor()
  // Stories answer at once, but in a later task.
  await expect.poll(() => page.getByText("Asking").count()).toBe(0)
}

/** What axe finds. In another theme, only colours can have become a barrier. */
async function barriers(page: Page, rules?: "color-contrast"): Promise<string[]> {
  // The policy of the page forbids scripts from elsewhere; the tool for tests is brought in beside it.
  const session = await page.context().newCDPSession(page)
  if (!rules) await session.send("Runtime.evaluate", { expression: axe })
  const only = rules ? `runOnly: ["${rules}"], ` : ""
  const expression = `axe.run(document, { ${only}resultTypes: ["violations"] })`
  const { result } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true })
  const { violations } = result.value as AxeResults
  // A story is a part of the page: what the whole page has is not missing in it.
  const ofWholePages = ["landmark-one-main", "page-has-heading-one", "region"]
  return violations
    .filter(({ id }) => !ofWholePages.includes(id))
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`))
}

test("the names of all stories are known", async () => {
  await page.goto(served.address)
  expect(await page.locator("li a").allTextContents()).toEqual(names)
})

describe("the pictures of the docs show what the page says", () => {
  for (const { name, story } of pictures)
    test(name, async () => {
      await open(story)
      const kept = readFileSync(join(repository, "docs/pictures", `${name}.yaml`), "utf8")
      expect(`${await page.locator("body").ariaSnapshot()}\n`, "npm run screenshots makes them again").toBe(kept)
      expect(statSync(join(repository, "docs/pictures", `${name}.png`)).size).toBeLessThan(120_000)
    })
})

describe("stories", () => {
  for (const name of names)
    test(name, async () => {
      await open(name)
      const file = `${name.replaceAll(/[^\w]+/g, "-")}.yaml`
      const tree = await page.locator("body").ariaSnapshot()
      await expect(`${tree}\n`).toMatchFileSnapshot(join(golden, file))
      expect(await barriers(page)).toEqual([])
      await page.emulateMedia({ colorScheme: "dark" })
      expect(await barriers(page, "color-contrast")).toEqual([])
      // Nothing is cut off or needs to be scrolled sideways on a phone, or at 200 % on a small screen.
      await page.setViewportSize({ width: 360, height: 700 })
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360)
      expect(said).toEqual([])
    })
})

describe("the map", () => {
  const story = "rollout: in progress"
  test("has as many cells of each colour as there are objects in each state, in both themes, also after a switch", async () => {
    await open(story)
    const light = await cellsByColour(page)
    const want = await cellsByState(page)
    expect(light.counts).toEqual(want)
    await page.emulateMedia({ colorScheme: "dark" })
    // The counts are right before the switch has reached the canvas: the colours say when it has.
    await expect.poll(async () => (await cellsByColour(page)).colours).not.toEqual(light.colours)
    const switched = await cellsByColour(page)
    expect(switched.counts).toEqual(want)
    await open(story, { colorScheme: "dark" })
    expect(await cellsByColour(page)).toEqual(switched)
  })

  test("is drawn with the colours of the system where those are forced", async () => {
    await open(story, { forcedColors: "active" })
    const { colours } = await cellsByColour(page)
    expect(new Set(colours).size).toBeGreaterThan(1)
  })

  test("says the object that the arrow keys lead to, and why it is so", async () => {
    await open(story)
    const map = page.getByRole("listbox")
    await map.focus()
    await page.keyboard.press("ArrowRight")
    const option = map.getByRole("option", { selected: true })
    await expect.poll(() => option.textContent()).toBe("shop/dicom-000, tier internal, up to date")
    await page.keyboard.press("ArrowDown")
    await expect.poll(() => option.textContent()).toMatch(/^shop\/dicom-040, tier earlyAccess/)
    await page.getByText("has crashed 4 times since").waitFor()
    await page.keyboard.press("Control+End")
    await expect.poll(() => option.textContent()).toBe("archive/dicom-999, default tier, without an image")
  })

  test("ten thousand objects take few elements, as a map and as a list", async () => {
    await open("rollout: map, ten thousand")
    const { counts } = await cellsByColour(page)
    expect(counts).toEqual(await cellsByState(page))
    expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(1000)
    await page.getByRole("button", { name: "List" }).click()
    await page.getByRole("grid").waitFor()
    expect(await page.getByRole("grid").getAttribute("aria-rowcount")).toBe("10001")
    expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(1000)
  })
})

describe("the dialog", () => {
  test("starts on Cancel, and shows what moved before it asks again", async () => {
    await open("rollout: dialog, it moved")
    const focused = () => page.evaluate(() => document.activeElement?.textContent)
    await expect.poll(focused).toBe("Cancel")
    await page.getByText("Dry run: the server would accept it").waitFor()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.getByRole("alert").getByText("37 more objects have the new image.").waitFor()
    await expect.poll(focused).toBe("Cancel")
  })

  test("keeps what was typed when the server refuses", async () => {
    await open("rollout: dialog, refused")
    await page.getByText("Nothing was changed; try again.").waitFor()
    expect(await page.getByRole("button", { name: "Pause" }).isDisabled()).toBe(true)
  })

  test("disabled buttons say why and do nothing", async () => {
    await open("rollout: silent, read-only")
    const button = page.getByRole("button", { name: "Pause" })
    expect(await button.getAttribute("aria-disabled")).toBe("true")
    expect(await button.getAttribute("aria-description")).toBe(
      "Started without --operate: nothing can be changed from here.",
    )
    await button.click({ force: true })
    expect(await page.getByRole("dialog").count()).toBe(0)
  })
})

test("the overview draws the rows that can be seen, and counts all", async () => {
  await open("rollout: overview, two hundred")
  expect(await page.getByRole("table").getAttribute("aria-rowcount")).toBe("201")
  expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(1500)
  await page.getByRole("searchbox").fill("service-17")
  await expect.poll(() => page.getByRole("table").getAttribute("aria-rowcount")).toBe("12")
})
