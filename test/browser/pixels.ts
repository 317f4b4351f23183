import type { Page } from "playwright-core"

/** The colours in which the map is drawn, as the picture has them: how many cells have each. */
export async function cellsByColour(page: Page): Promise<{ counts: number[]; colours: string[] }> {
  const found = await page.evaluate(() => {
    const canvas = document.querySelector("canvas")!
    const { pitch, columns, tops } = canvas.dataset
    const scale = canvas.width / canvas.clientWidth
    const context = canvas.getContext("2d")!
    const { data, width } = context.getImageData(0, 0, canvas.width, canvas.height)
    const counts: Record<string, number> = {}
    for (const group of tops!.split(" ")) {
      const [top = 0, count = 0] = group.split(":").map(Number)
      for (let index = 0; index < count; index++) {
        // The edge of a cell has the colour of its state, whatever sign is inside.
        const x = Math.round((index % Number(columns)) * Number(pitch) * scale)
        const y = Math.round((top + Math.floor(index / Number(columns)) * Number(pitch)) * scale)
        const at = (y * width + x) * 4
        const colour = data.slice(at, at + 4).join(" ")
        counts[colour] = (counts[colour] ?? 0) + 1
      }
    }
    return counts
  })
  const sorted = Object.entries(found).sort(([, a], [, b]) => b - a)
  return { counts: sorted.map(([, count]) => count), colours: sorted.map(([colour]) => colour).sort() }
}

/** How many objects the server counts in each state, as the legend says, the most first. */
export async function cellsByState(page: Page): Promise<number[]> {
  const counts = await page.locator(".chips .chip:has(.swatch) .dim").allTextContents()
  return counts.map(text => Number(text.replaceAll(",", ""))).sort((a, b) => b - a)
}
