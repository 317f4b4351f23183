import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { flagsOf, optionsOf } from "../options.ts"
import { commands } from "../tree.ts"
import { completionScript, type Shell } from "./completion.ts"

const listed = commands.filter(command => command.group)

for (const shell of ["bash", "zsh", "fish"] satisfies Shell[])
  test(`the ${shell} script knows every command and option, and nothing hidden`, () => {
    const script = completionScript(shell, commands)
    for (const command of listed) {
      expect(script).toContain(command.name)
      for (const option of optionsOf(command))
        expect(script).toContain(`${shell === "fish" ? "-l " : "--"}${flagsOf(option).long}`)
    }
    expect(script).not.toMatch(/^.*'__complete/m)
  })

describe("in a real bash", () => {
  let folder = ""
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "aim-completion-"))
    writeFileSync(join(folder, "aim.bash"), completionScript("bash", commands))
    // What the script asks for names of objects.
    writeFileSync(
      join(folder, "aim"),
      '#!/bin/sh\ncase "$1 $2" in "__complete serviceimages"|"__complete ours"|"__complete rollouts") echo si/web si/shop;; esac; [ "$2" = namespaces ] && echo shop "$@"; [ "$2 $4" = "tiers si/web" ] && echo early late; [ "$2 $4" = "settings si/web" ] && echo early= late=; [ "$2 $4" = "operations si/web" ] && echo g4; [ "$2" = objects ] && case "$3" in */*) echo dicom/radiology;; *) echo si/ deploy/ dicom/;; esac\n',
      { mode: 0o755 },
    )
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** What Tab offers at the end of the line. */
  const offers = (line: string) => {
    const words = line.split(" ")
    const script = `source ${folder}/aim.bash; COMP_WORDS=(${words.map(word => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _aim; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script], {
      encoding: "utf8",
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    })
    expect(stderr).toBe("")
    return stdout.trim().split("\n")
  }

  test("commands", () => {
    expect(offers("aim ")).toEqual(expect.arrayContaining([...listed.map(({ name }) => name), "help", "--version"]))
    expect(offers("aim sta")).toEqual(["status"])
    expect(offers("aim help w")).toEqual(["wait", "why"])
  })
  test("arguments and options", () => {
    expect(offers("aim manifests ")).toEqual(["crds", "rbac", "policies", "agent", "dashboard", "all"])
    expect(offers("aim wait --t")).toEqual(["--timeout"])
    expect(offers("aim get -o ")).toEqual(["wide", "name", "json", "yaml"])
    expect(offers("aim -q controller --log-level w")).toEqual(["warn"])
  })
  test("names of objects, from the cluster that the line is about", () => {
    expect(offers("aim wait si/w")).toEqual(["si/web"])
    expect(offers("aim grant --context prod ").filter(Boolean)).toEqual([
      "shop",
      "__complete",
      "namespaces",
      "--context",
      "prod",
    ])
  })
  test("tiers of the rollout that was named, also where an image is to be set", () => {
    expect(offers("aim approve si/w")).toEqual(["si/web"])
    expect(offers("aim approve --context prod si/web e")).toEqual(["early"])
    expect(offers("aim approve si/web early l")).toEqual(["late"])
    expect(offers("aim set-image si/w")).toEqual(["si/web"])
    expect(offers("aim set-image si/web ")).toEqual(["early=", "late="])
    expect(offers("aim rollback si/web --operation ")).toEqual(["g4"])
    expect(offers("aim demo c")).toEqual(["canary"])
    expect(offers("aim why d")).toEqual(["deploy/", "dicom/"])
    expect(offers("aim why dicom/r")).toEqual(["dicom/radiology"])
    expect(offers("aim wait si/web si/s")).toEqual(["si/shop"])
  })
})
