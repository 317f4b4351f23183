import type { BrowserContext, Page } from "playwright-core"
import { afterEach, beforeEach, expect, test } from "vitest"
import { pageFolder } from "#tools/dashboard.ts"
import { listen, openProfile } from "./chromium.ts"
import { ToyServer } from "./toy-server.ts"

// How the page keeps in touch with its server: sessions, one stream for all tabs, silence, and coming back.

let server: ToyServer
let address: string
let profile: { context: BrowserContext; close: () => Promise<void> }
beforeEach(async () => {
  server = new ToyServer(await pageFolder())
  address = await server.listen()
  profile = await openProfile()
})
afterEach(async () => {
  await profile.close()
  await server.close()
})

async function open(query = ""): Promise<Page> {
  const page = await profile.context.newPage()
  await page.goto(address + query)
  return page
}
const rows = (page: Page) => page.getByRole("row").count()
const overview = (page: Page) => page.getByRole("link", { name: "image-0" })

test("a key is used once, leaves the address, and opens the overview", async () => {
  const page = await open("#key=k1")
  const said = listen(page)
  await overview(page).waitFor()
  expect(page.url()).toBe(address)
  await expect.poll(() => page.title()).toBe("(3) AutoImageManager")
  // What an object says is text: no element is made of it.
  await page.getByText("<b>all</b> fail").first().waitFor()
  expect(said).toEqual([])
  const other = await open()
  await overview(other).waitFor()
  await profile.context.clearCookies()
  await other.evaluate(() => localStorage.clear())
  const third = await open("#key=k1")
  await third.getByText("this key was used before").waitFor()
  await third.getByText("start aim dashboard again").waitFor()
})

test("ten tabs share one stream, and a tab that ends gives back what it showed", async () => {
  const first = await open("#key=k1")
  await overview(first).waitFor()
  const tabs: Page[] = []
  for (let tab = 1; tab < 10; tab++) tabs.push(await open(`?kind=serviceimages&name=image-${tab}`))
  await expect.poll(() => [...server.streams.values()].map(({ pages }) => pages.length)).toEqual([10])
  expect(server.opened).toBe(1)
  server.setRows(5)
  await expect.poll(() => rows(first)).toBe(6)
  for (const tab of tabs) await tab.close()
  await expect.poll(() => [...server.streams.values()].map(({ pages }) => pages)).toEqual([["overview"]])
})

test("a stream that ends is opened again, and brings everything", async () => {
  const page = await open("#key=k1")
  await overview(page).waitFor()
  server.cut()
  server.setRows(7)
  await expect.poll(() => server.opened, { timeout: 20_000 }).toBeGreaterThan(1)
  await expect.poll(() => rows(page), { timeout: 20_000 }).toBe(8)
})

test("after 20 s of silence the page says how old its picture is, and keeps it", async () => {
  const page = await profile.context.newPage()
  await page.clock.install()
  await page.goto(`${address}#key=k1`)
  await overview(page).waitFor()
  server.isSilent = true
  await page.clock.runFor(15_000)
  expect(await page.getByText("No news for").count()).toBe(0)
  await page.clock.runFor(8000)
  await page
    .getByRole("alert")
    .getByText(/No news for 2\d s/)
    .waitFor()
  expect(await overview(page).isVisible()).toBe(true)
  server.isSilent = false
  await expect
    .poll(async () => {
      await page.clock.runFor(1000)
      return await page.getByText("No news for").count()
    })
    .toBe(0)
})

test("view and filters are in the address, and the way back leads back", async () => {
  const page = await open("?states=Halted&search=image-1#key=k1")
  await expect.poll(() => rows(page)).toBe(2)
  await page.getByRole("searchbox").fill("")
  await expect.poll(() => rows(page)).toBe(4)
  expect(page.url()).toBe(`${address}?states=Halted`)
  await page.getByRole("link", { name: "image-2" }).click()
  expect(page.url()).toBe(`${address}?kind=serviceimages&name=image-2`)
  await page.goBack()
  await overview(page).waitFor()
  expect(page.url()).toBe(`${address}?states=Halted`)
  const lost = await open("?colour=red&kinds=nothings")
  await lost.getByText("does not know: colour").waitFor()
  await lost.getByText("kinds=nothings names no kind").waitFor()
})
