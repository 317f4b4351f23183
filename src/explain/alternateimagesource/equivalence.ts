import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Asker } from "#controllers/alternateimagesource/ask.ts"
import { coverOf } from "#controllers/alternateimagesource/coverage.ts"
import { pullsAs, readWorkload } from "#controllers/alternateimagesource/facts.ts"
import { imageAt, repositoryTextOf, sameSource } from "#core/image/equivalent.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { FailureClass, Platform, Resolution, Resolved } from "#registry/index.ts"
import type { Survey } from "./survey.ts"

/** An image that workloads name, and the repositories that should have it. */
export type Use = {
  readonly image: string
  readonly repositories: readonly string[]
  readonly disabled: readonly string[]
  /** Its digest where it runs. */
  readonly running: string | undefined
  readonly workloads: readonly string[]
  readonly asker: Asker
}

export type Result =
  | "Same"
  | "Missing"
  | "Differs"
  | "PlatformsMissing"
  | "Denied"
  | "RateLimited"
  | "Unreachable"
  | "Disabled"

export type Finding = { repository: string; result: Result; message?: string; digest?: string }

/** The repository can serve the image, or is not to be used anyway. */
export const isWell = ({ result }: Finding) => result === "Same" || result === "Disabled"

/** The images of a source's workloads, each image once for all workloads with the same credentials. */
export function usesOf({ sources, workload: rawOf, namespace }: Survey, source: AlternateImageSource): Use[] {
  const uses = new Map<string, Use & { workloads: string[] }>()
  for (const { workload, container } of sources.scene(source).roster) {
    const raw = rawOf(workload)
    const { labels, owner } = raw ? readWorkload(raw) : {}
    const cover = labels && coverOf(source.spec, { ...workload, labels, owner }, container)
    if (!raw || !cover) continue
    const asker = pullsAs(raw)
    const key = JSON.stringify([container.image, asker])
    const use = uses.get(key) ?? {
      image: container.image,
      repositories: cover.equivalentRepositories,
      disabled: source.spec.policy.disabledRepositories,
      running: sources.digest(namespace, container.image),
      workloads: [],
      asker,
    }
    use.workloads.push(`${workload.type.kind}/${workload.name}`)
    uses.set(key, use)
  }
  return [...uses.values()].map(use => ({ ...use, workloads: [...new Set(use.workloads)] }))
}

export type Ask = (image: string, options: { platforms: boolean }) => Promise<Resolution>

/**
 * Asks every repository for an image, and compares. The expected digest is that of the image reference, otherwise what
 * runs, as the controller knows it; otherwise that of the workload's own repository, otherwise that of the first
 * repository that answers.
 */
export async function verify(use: Use, ask: Ask): Promise<{ digest: string | undefined; findings: Finding[] }> {
  const { image, repositories } = use
  const asked = repositories.filter(repository => !use.disabled.some(other => sameSource(other, repository)))
  const answers = new Map<string, Resolution>()
  const askAll = (some: readonly string[], platforms: boolean) =>
    Promise.all(
      some.map(async repository => answers.set(repository, await ask(imageAt(image, repository), { platforms }))),
    )
  await askAll(asked, false)
  const digest = wantedDigest(use, answers)
  const has = (repository: string, isWanted: boolean) => {
    const said = answers.get(repository)
    return said?.ok === true && (said.digest === digest) === isWanted
  }
  const differing = asked.filter(repository => has(repository, false))
  const model = asked.find(repository => has(repository, true))
  // Reading a manifest may count as a pull, so it is done only where there is something to explain.
  if (differing.length > 0) await askAll(model === undefined ? differing : [model, ...differing], true)
  const wanted = model === undefined ? undefined : platformsOf(answers.get(model))
  const findings = repositories.map((repository): Finding => {
    const said = answers.get(repository)
    return said ? { repository, ...judge(said, digest, wanted) } : { repository, result: "Disabled" }
  })
  return { digest, findings }
}

function wantedDigest({ image, running }: Use, answers: ReadonlyMap<string, Resolution>): string | undefined {
  const parsed = parseImageReference(image)
  const pinned = parsed.ok ? parsed.reference.digest : undefined
  const own = [...answers].find(([repository]) => sameSource(repository, repositoryTextOf(image)))?.[1]
  const first = [own, ...answers.values()].find((said): said is Resolved => said?.ok === true)
  return pinned ?? running ?? first?.digest
}

const platformsOf = (said: Resolution | undefined) => (said?.ok ? said.platforms : undefined)

function judge(
  said: Resolution,
  digest: string | undefined,
  wanted: readonly Platform[] | undefined,
): Omit<Finding, "repository"> {
  if (!said.ok) return { result: words[said.class], message: said.message }
  if (said.digest === digest) return { result: "Same", digest: said.digest }
  const lacking = wanted?.filter(one => !said.platforms?.some(other => nameOf(other) === nameOf(one))).map(nameOf) ?? []
  const what = `${short(said.digest)} instead of ${short(digest ?? "")}`
  if (lacking.length === 0) return { result: "Differs", digest: said.digest, message: what }
  const message = said.platforms
    ? `no ${lacking.join(", ")}; ${what}`
    : `one platform only, instead of ${wanted!.map(nameOf).join(", ")}; ${what}`
  return { result: "PlatformsMissing", digest: said.digest, message }
}

const words: Record<FailureClass, Result> = {
  NotFound: "Missing",
  Denied: "Denied",
  RateLimited: "RateLimited",
  Unreachable: "Unreachable",
  TLS: "Unreachable",
  Timeout: "Unreachable",
  ForbiddenAddress: "Unreachable",
  InvalidAnswer: "Unreachable",
}

const nameOf = ({ os, architecture, variant }: Platform) => [os, architecture, ...(variant ? [variant] : [])].join("/")

const short = (digest: string) => digest.slice(0, "sha256:".length + 12)
