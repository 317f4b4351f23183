import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { scripts } from "../scripts/all.ts"
import type { RuntimeFloor } from "./floor.ts"
import { readRecorded, writeRecorded } from "./recorded.ts"
import { runScript } from "./run.ts"
import type { Script } from "./script.ts"

export type CriSuiteOptions = {
  /** The name of the record. */
  recorded: string
  /** Compared with the record, and never written to it. */
  isSimulated?: true
  open: () => Promise<RuntimeFloor>
}

/**
 * Runs every script on a floor and compares with what was recorded. `AIM_RECORD=1` writes the record instead, on a real
 * runtime only.
 */
export function criSuite(options: CriSuiteOptions): void {
  const isRecording = Boolean(process.env.AIM_RECORD) && !options.isSimulated
  const recorded = isRecording ? new Map() : readRecorded(options.recorded)
  const seen = new Map<string, string[]>()
  let floor: RuntimeFloor

  // Scripts mostly wait.
  vi.setConfig({ maxConcurrency: 8 })

  beforeAll(async () => {
    floor = await options.open()
  })
  afterAll(async () => {
    await floor?.close()
    if (isRecording) writeRecorded(options.recorded, new Map(scripts.map(({ name }) => [name, seen.get(name) ?? []])))
  })

  const play = (script: Script) => async () => {
    const lines = await runScript(floor, script)
    seen.set(script.name, lines)
    if (!isRecording) expect(lines.join("\n")).toBe(recorded.get(script.name)?.join("\n"))
  }
  describe.concurrent("side by side", () => {
    for (const script of scripts) if (!script.alone) test(script.name, play(script))
  })
  describe("alone", () => {
    for (const script of scripts) if (script.alone) test(script.name, play(script))
  })
}
