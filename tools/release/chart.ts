import { cpSync, globSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { repository } from "../kube/folders.ts"
import { archive } from "./archive.ts"

/** The chart as `helm package` would pack it; Helm writes the time of day into each of its files. */
export async function packChart(target: string, time: Date, source = join(repository, "charts/aim")): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "aim-chart-"))
  try {
    // What .helmignore names is not part of the chart.
    const files = globSync("**/*", { cwd: source, exclude: ["crds"], withFileTypes: true }).filter(each =>
      each.isFile(),
    )
    const names = files.map(({ parentPath, name }) => join(parentPath, name).slice(source.length + 1))
    for (const name of names) cpSync(join(source, name), join(work, "aim", name), { recursive: true })
    await archive(
      work,
      names.sort().map(name => join("aim", name)),
      target,
      time,
    )
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
