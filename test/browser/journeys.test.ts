import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { expect, onTestFinished, test } from "vitest"
import { accessIn } from "#test/support/kubeconfig.ts"
import { startProgram } from "#test/support/program.ts"
import { connectApi, type Json, until } from "#tools/kube/api.ts"
import { repository } from "#tools/kube/folders.ts"
import { listen, openProfile } from "./chromium.ts"
import { cellsByColour, cellsByState } from "./pixels.ts"

// Whole journeys with the real server, on the cluster of `aim up --dashboard`.

/** The fleet of the guide: eight Deployments in three tiers, of which the last waits for a person. */
async function openDashboard() {
  const folder = mkdtempSync(join(tmpdir(), "aim-journey-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const example = (name: string) => readFileSync(join(repository, "examples/web", name), "utf8")
  const load = (name: string, text: string) => {
    writeFileSync(join(folder, name), text.replaceAll("REGISTRY", "registry.example.com"))
    return ["--load", join(folder, name)]
  }
  const image = example("serviceimage.yaml").replace(
    "priority: 0 }",
    "priority: 0, requireApproval: true, settleSeconds: 1 }",
  )
  expect(image).toContain("requireApproval")
  const kubeconfig = join(folder, "kubeconfig")
  const program = startProgram("bin/aim", [
    ...["up", "--dashboard", "--speed", "20", "--write-kubeconfig", kubeconfig],
    ...["--registries", join(repository, "examples/web/registries.yaml")],
    ...load("tenants.yaml", example("tenants.yaml")),
    ...load("serviceimage.yaml", image),
  ])
  const address = await until("the address", async () => /http:\S+#key=\S+/.exec(program.output)?.[0])
  const profile = await openProfile()
  onTestFinished(profile.close)
  const page = await profile.context.newPage()
  const said = listen(page)
  await page.goto(address)
  const api = connectApi(accessIn(readFileSync(kubeconfig, "utf8")))
  const images = async (): Promise<string> => {
    const { items } = await api.get("/apis/apps/v1/namespaces/shop/deployments")
    const tags = items.map(({ spec }: Json) => spec.template.spec.containers[0].image.split(":")[1])
    return [...new Set(tags)].sort().join("+")
  }
  const state = async () => (await api.get("/apis/autoimagemanager.io/v1alpha1/serviceimages/web")).status?.state
  return { page, said, images, state }
}

/** Walks to an element by the tabulator alone, as people without a pointer do, and presses Enter. */
async function press(page: Page, words: string | RegExp): Promise<void> {
  const focused = () =>
    page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "")
  const isThere = (text: string) => (typeof words === "string" ? text.trim() === words : words.test(text))
  for (let steps = 0; steps < 120; steps++) {
    if (isThere(await focused())) return await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
  }
  expect.fail(`the tabulator leads nowhere to ${words}`)
}

/** In a dialog: what it says, then yes. */
async function confirm(page: Page, button: string): Promise<void> {
  await page.getByText("✓ Dry run").waitFor()
  await expect
    .poll(() => page.getByRole("dialog").getByRole("button", { name: button, exact: true }).isEnabled())
    .toBe(true)
  await press(page, button)
  await press(page, "Close")
  await page.getByRole("dialog").waitFor({ state: "detached" })
}

async function setImage(page: Page, image: string): Promise<void> {
  await press(page, "Set image")
  const field = page.getByRole("dialog").getByRole("textbox").first()
  await field.waitFor()
  for (let steps = 0; steps < 20 && !(await field.evaluate(element => element === document.activeElement)); steps++)
    await page.keyboard.press("Tab")
  await page.keyboard.press("Control+A")
  await page.keyboard.type(image)
  await press(page, "Preview")
  await confirm(page, "Set image")
}

const heading = (page: Page, state: string) =>
  page.getByRole("heading", { name: `web ${state}` }).waitFor({ timeout: 60_000 })

test("a bad image is seen, understood and taken back, and a good one approved to its end, by keyboard alone", async () => {
  const { page, said, images, state } = await openDashboard()
  await page
    .getByRole("row", { name: /web ServiceImage/ })
    .getByText("8/8")
    .waitFor()
  await press(page, "web")
  await heading(page, "Complete")
  await page.getByText("up to date 8").waitFor()

  await setImage(page, "registry.example.com/web:v4")
  await heading(page, "Halted")
  await page.getByText("ImagePullFailed").first().waitFor()
  await press(page, /^Why shop\/amber/)
  await page
    .getByRole("complementary")
    .getByText(/registry.example.com\/web:v4: not found/)
    .waitFor()
  expect(page.url()).toContain("object=shop/amber")
  expect(await state()).toBe("Halted")
  expect((await cellsByColour(page)).counts).toEqual(await cellsByState(page))

  await press(page, "Roll back")
  await confirm(page, "Roll back")
  await heading(page, "Rolled back")
  expect(await images()).toBe("v1")

  await press(page, "Pause")
  await confirm(page, "Pause")
  await setImage(page, "registry.example.com/web:v2")
  await heading(page, "Paused")
  await press(page, "Resume")
  await confirm(page, "Resume")
  await page.getByText("Waits for approval").waitFor({ timeout: 60_000 })
  expect(await images()).toBe("v1+v2")
  await press(page, "Approve")
  await confirm(page, "Approve")
  await heading(page, "Complete")
  expect(await images()).toBe("v2")
  await page
    .getByRole("row", { name: /g\d+ Complete/ })
    .first()
    .waitFor()
  expect(said).toEqual([])
})
