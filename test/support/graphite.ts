import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { until } from "#tools/kube/api.ts"
import { findProgram } from "#tools/kube/command.ts"
import { preparePackages } from "#tools/kube/packages.ts"
import { unusedPort } from "./ports.ts"
import { startProgram } from "./program.ts"

export const prepareGraphite = () =>
  preparePackages({ graphite: true, say: line => process.stderr.write(`graphite: ${line}\n`) })

type Point = { readonly name: string; readonly value: number; readonly at: number }

/** A real Graphite: carbon takes points, one per second and name, and the web application answers queries. */
export type Graphite = {
  readonly port: number
  readonly url: string
  /** Returns when the web application shows the points. */
  write(points: readonly Point[]): Promise<void>
}

/** Starts both on loopback; they and their data go when the test ends. */
export async function startGraphite(): Promise<Graphite> {
  const folder = mkdtempSync(join(tmpdir(), "aim-graphite-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ["whisper", "log"]) mkdirSync(join(folder, name))
  const [lines, queries, port] = [await unusedPort(), await unusedPort(), await unusedPort()]
  const config = {
    STORAGE_DIR: folder,
    LOCAL_DATA_DIR: join(folder, "whisper"),
    CONF_DIR: folder,
    LOG_DIR: join(folder, "log"),
    PID_DIR: folder,
    LINE_RECEIVER_INTERFACE: "127.0.0.1",
    LINE_RECEIVER_PORT: lines,
    PICKLE_RECEIVER_PORT: 0,
    CACHE_QUERY_INTERFACE: "127.0.0.1",
    CACHE_QUERY_PORT: queries,
    ENABLE_TAGS: "False",
    MAX_CREATES_PER_MINUTE: "inf",
  }
  const settings = Object.entries(config).map(([key, value]) => `${key} = ${value}\n`)
  writeFileSync(join(folder, "carbon.conf"), `[cache]\n${settings.join("")}`)
  writeFileSync(join(folder, "storage-schemas.conf"), "[all]\npattern = .*\nretentions = 1s:1h\n")
  const web = {
    SECRET_KEY: "of a test",
    STORAGE_DIR: folder,
    CONF_DIR: folder,
    LOG_DIR: join(folder, "log"),
    TIME_ZONE: "UTC",
  }
  const python = Object.entries(web).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
  writeFileSync(
    join(folder, "aim_graphite.py"),
    `${python.join("")}# Only what is in files is shown: a point on its way from carbon's memory to its file is in neither for a moment.
CARBONLINK_HOSTS = []
ALLOWED_HOSTS = ["127.0.0.1"]
# Answers are kept for a minute, as where there is a memcached.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
`,
  )
  startProgram(findProgram("carbon-cache")!, ["--config", join(folder, "carbon.conf"), "--nodaemon", "start"])
  // Debian's own interpreter has Debian's modules, whatever comes first in PATH.
  startProgram("/usr/bin/python3", ["-m", "django", "runserver", "--noreload", `127.0.0.1:${port}`], {
    PYTHONPATH: folder,
    DJANGO_SETTINGS_MODULE: "graphite.settings",
    GRAPHITE_SETTINGS_MODULE: "aim_graphite",
  })
  const url = `http://127.0.0.1:${port}`
  await until("carbon to listen", () => send(lines, ""))
  await until("Graphite to answer", () =>
    fetch(`${url}/render?format=json`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )

  async function write(points: readonly Point[]) {
    const text = points.map(({ name, value, at }) => `${name} ${value} ${Math.floor(at / 1000)}\n`).join("")
    await until("carbon to take points", () => send(lines, text))
    for (const { name, at } of points)
      await until(`Graphite to show ${name}`, async () => {
        const second = Math.floor(at / 1000)
        const parameters = {
          target: name,
          from: String(second - 1),
          until: String(second),
          format: "json",
          noCache: "1",
        }
        const [found] = (await (await fetch(`${url}/render?${new URLSearchParams(parameters)}`)).json()) as Rendered[]
        return found?.datapoints.some(([value, when]) => value !== null && when === second) ?? false
      })
  }
  return { port, url, write }
}

type Rendered = { datapoints: [number | null, number][] }

const send = (port: number, text: string): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, "127.0.0.1", () => socket.end(text))
    socket.once("error", () => resolve(false)).once("close", failed => resolve(!failed))
  })
