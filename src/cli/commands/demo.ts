import { rolloutOf, type Seen } from "#operations/rollout.ts"
import { type Clock, scaledClock, sleep } from "#runtime/clock.ts"
import { dashboardOf, present, startDashboard, untilEnded } from "../browser/serve.ts"
import { Failure, type Run, UsageError, type World } from "../command.ts"
import { stories } from "../demo/all.ts"
import type { Stage, Story } from "../demo/story.ts"
import { serviceImages } from "../kinds.ts"
import { type LocalCluster, startLocalCluster } from "../local-cluster.ts"
import { parse } from "../program.ts"
import { statusBlock, statusLines } from "../render/status.ts"
import { readableWidth, twoColumns, wrappedText } from "../render/wrap.ts"

/** A minute of the cluster takes three real seconds: slow enough to see, fast enough to keep watching. */
const speed = 20
const frameMs = 100

export const run: Run = async (input, world) => {
  if (input.options.list) return { text: list(world.view.columns), exitCode: 0 }
  const [name = stories[0]!.name] = input.arguments
  const story = stories.find(each => each.name === name)
  if (!story) throw new UsageError(`there is no story ${name}: write ${stories.map(each => each.name).join(" or ")}`)

  const told = narrator(world)
  told.tell(`aim demo: ${story.title}.`)
  const clock = scaledClock(world.clock, speed)
  const { nodes, registries, operators: alsoRun, traffic = [] } = story
  const local = await startLocalCluster({ clock, nodes, registries, alsoRun, traffic })
  const dashboard = input.options.dashboard
    ? await startDashboard(world, dashboardOf(local, { speed, cluster: "the demo", clock }))
    : undefined
  const endShowing = dashboard && present(dashboard, world, { opens: world.view.isTerminal })
  try {
    // The story begins when a page watches.
    while (dashboard && dashboard.streams === 0) await sleep(world.clock, frameMs, world.signal)
    await story.tellWith(stageFor(local, { ...world, told, clusterClock: clock }))
    if (dashboard) {
      told.tell("The story is over; the cluster and the dashboard stay until Ctrl-C.")
      await untilEnded(world)
    }
  } finally {
    endShowing?.()
    await dashboard?.close()
    await local.stop()
  }
  return { text: told.end(story), exitCode: 0 }
}

const list = (columns: number) =>
  `${twoColumns(
    stories.map(({ name, title }) => [name, title] as const),
    columns,
  )}\n`

/**
 * On a terminal the last picture of the rollout stays below the text; elsewhere every sentence and
 * every change is a line.
 */
export function narrator({ view, draw }: Pick<World, "view" | "draw">) {
  const text: string[] = []
  let picture = ""
  const redraw = () => draw(`${text.join("\n\n")}\n${picture && `\n${picture}`}`)
  return {
    tell(words: string) {
      // Line breaks inside a sentence are replaced by breaks at the width of the window.
      const flowing = words.replaceAll(/\n(?=[a-z])/g, " ")
      const sentence = view.isTerminal ? wrappedText(flowing, readableWidth(view.columns)) : words
      if (picture) text.push(picture.trimEnd())
      picture = ""
      text.push(sentence)
      if (view.isTerminal) redraw()
      else draw(`\n${sentence}\n`)
    },
    show(text: string) {
      if (!view.isTerminal && text === picture) return
      picture = view.isTerminal ? wrappedText(text, view.columns, 9) : text
      if (view.isTerminal) redraw()
      else draw(text)
    },
    /** Further lines of the picture. */
    add(lines: string) {
      picture += view.isTerminal ? wrappedText(lines, view.columns, 4) : lines
      if (view.isTerminal) redraw()
      else draw(lines)
    },
    end: ({ next }: Story) => `\nTo try next:\n${next.map(line => `  ${line}\n`).join("")}`,
  }
}

/** A command of this program, run on the cluster of the story and by its clock. */
async function typed(
  line: string,
  { client }: LocalCluster,
  world: World & { told: ReturnType<typeof narrator>; clusterClock: Clock },
): Promise<void> {
  const { told, clusterClock } = world
  const add = (text: string) => told.add(text.replaceAll(/^(?=.)/gm, "  "))
  told.tell(`$ ${world.program} ${line}`)
  const decision = parse(line.split(" "), world)
  if (decision.do !== "run") throw new Failure(`the story failed: ${line} is not a command`)
  const { run: runIt } = await decision.command.load()
  try {
    const { text } = await runIt(decision.input, {
      ...world,
      clock: clusterClock,
      connect: async () => ({ ...client, close: () => {} }),
      say: words => add(`${words}\n`),
    })
    add(text)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    add(`${world.program}: ${error.message}\n`)
  }
}

function stageFor(
  local: LocalCluster,
  world: World & { told: ReturnType<typeof narrator>; clusterClock: Clock },
): Stage {
  const { clock, signal, view, told, clusterClock } = world
  const show: Stage["show"] = async (picture, seconds) => {
    const deadline = clock.monotonic() + (seconds * 1000) / speed
    for (;;) {
      const { text, isSo } = await picture()
      told.show(text)
      if (isSo) return
      if (clock.monotonic() > deadline) throw new Failure(`the story failed: this took too long\n${text}`)
      await sleep(clock, frameMs, signal)
    }
  }
  return {
    world: local,
    tell: told.tell,
    show,
    type: line => typed(line, local, world),
    pause: seconds => sleep(clock, view.isTerminal ? seconds * 1000 : 0, signal),
    async watch(name, isSo, seconds) {
      let object!: Seen
      await show(async () => {
        object = await local.client.get<Seen>(serviceImages, { name })
        const rollout = rolloutOf(object)
        const text = view.isTerminal ? statusBlock(rollout, view, clusterClock.now()) : statusLines(rollout)
        return { text, isSo: isSo(object) }
      }, seconds)
      return object
    },
  }
}
