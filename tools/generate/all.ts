import { boundaryFiles } from "./boundaries.ts"
import { chartFiles } from "./chart/files.ts"
import { crdFiles } from "./crds.ts"
import { decisionIndex } from "./decisions.ts"
import { exampleFiles } from "./examples.ts"
import type { GeneratedFile } from "./file.ts"
import { kindIndex, kindPages } from "./kind-pages.ts"
import { monitoringFiles } from "./monitoring/files.ts"

/** Everything that is derived from the code and kept in the repository. */
const producers: (() => GeneratedFile[] | Promise<GeneratedFile[]>)[] = [
  boundaryFiles,
  chartFiles,
  crdFiles,
  () => [decisionIndex()],
  async () => [await kindIndex()],
  kindPages,
  exampleFiles,
  monitoringFiles,
]

export const derived = async (): Promise<GeneratedFile[]> =>
  (await Promise.all(producers.map(produce => produce()))).flat()
