import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Browser, chromium, type Page } from "playwright-core"
import { preparePackages } from "#tools/kube/packages.ts"

const flags = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync", "--force-color-profile=srgb", "--font-render-hinting=none"],
]

/** Debian's chromium, without a window and with nothing in its profile. Installed if it is missing. */
export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  await preparePackages({ browser: true, say: line => process.stderr.write(`browser: ${line}\n`) })
  return await chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: flags })
}

/** The same with a profile of its own: tabs of one window share workers and storage only there. */
export async function openProfile() {
  await preparePackages({ browser: true, say: line => process.stderr.write(`browser: ${line}\n`) })
  const folder = mkdtempSync(join(tmpdir(), "aim-browser-"))
  const context = await chromium.launchPersistentContext(folder, {
    ...{ executablePath: "/usr/bin/chromium", headless: true, args: flags, viewport: { width: 1280, height: 900 } },
  })
  const close = async () => {
    await context.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { context, close }
}

/** What the console says, and what was thrown: a journey must leave it empty. */
export function listen(page: Page): string[] {
  const said: string[] = []
  page.on("console", message => {
    if (["error", "warning"].includes(message.type())) said.push(`${message.type()}: ${message.text()}`)
  })
  page.on("pageerror", error => said.push(`thrown: ${error.message}`))
  return said
}
