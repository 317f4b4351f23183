import { createReadStream } from "node:fs"
import { pipeline, Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { Failure, type World } from "./command.ts"

type Stdin = Pick<World, "stdin">

/** The name of a file in messages: `-` is stdin. */
export const inputName = (file: string) => (file === "-" ? "stdin" : file)

/** A text that is read as a whole, such as manifests. */
export async function readText(file: string, world: Stdin): Promise<string> {
  const decoder = new TextDecoder()
  let text = ""
  for await (const bytes of bytesOf(file, world)) text += decoder.decode(bytes, { stream: true })
  return text + decoder.decode()
}

/** A text of any size, line by line. No line may be longer than `longest`: a few kilobytes of gzip can hold gigabytes. */
export async function* readLines(file: string, world: Stdin, longest: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const bytes of bytesOf(file, world)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/)
    rest = lines.pop()!
    if (rest.length > longest) throw new Failure(`${inputName(file)} has a line of more than ${longest} characters`)
    yield* lines
  }
  rest += decoder.decode()
  if (rest !== "") yield rest
}

/** The bytes of a file or of stdin. Gzipped content is unpacked, whatever the name of the file. */
async function* bytesOf(file: string, { stdin }: Stdin): AsyncGenerator<Uint8Array> {
  const source = file === "-" ? stdin : createReadStream(file)
  try {
    const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array | string>
    const first = await chunks.next()
    if (first.done) return
    const head = Buffer.from(first.value as Uint8Array)
    const whole = prepended(head, chunks)
    yield* isGzip(head) ? gunzipped(whole) : whole
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!code) throw error
    throw new Failure(`${inputName(file)}: ${code === "ENOENT" ? "there is no such file" : (error as Error).message}`)
  } finally {
    if (file !== "-") source.destroy()
  }
}

const isGzip = (head: Uint8Array) => head[0] === 0x1f && head[1] === 0x8b

async function* prepended(head: Uint8Array, rest: AsyncIterator<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield Buffer.from(next.value as Uint8Array)
}

function gunzipped(packed: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // Errors are thrown where the output is read.
  return pipeline(Readable.from(packed), createGunzip(), () => {})
}
