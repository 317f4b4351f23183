export type Progress = {
  /** A new thing begins; of so many parts, if that is known. */
  begin(what: string, total?: number): void
  /** So many parts of it are done. */
  at(done: number): void
  end(): void
}

const width = 30
const drawMs = 100

/** A bar on a terminal, a line per step elsewhere. To stderr: the table is what the program prints. */
export function showProgress(stream: NodeJS.WriteStream = process.stderr): Progress {
  let what = ""
  let total = 0
  let startedAt = 0
  let drawnAt = 0
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`
  const draw = (done: number) => {
    const filled = total === 0 ? 0 : Math.floor((width * Math.min(done, total)) / total)
    const bar = total === 0 ? "" : `${"█".repeat(filled)}${"░".repeat(width - filled)} ${done}/${total} `
    stream.write(`\r\x1b[K${bar}${what} ${seconds()}`)
  }
  const end = () => {
    if (what) stream.write(stream.isTTY ? `\r\x1b[K${what}: ${seconds()}\n` : `${what}: ${seconds()}\n`)
    what = ""
  }
  return {
    begin(next, parts = 0) {
      end()
      what = next
      total = parts
      startedAt = performance.now()
      drawnAt = 0
      if (stream.isTTY) draw(0)
    },
    at(done) {
      if (!stream.isTTY || performance.now() - drawnAt < drawMs) return
      drawnAt = performance.now()
      draw(done)
    },
    end,
  }
}
