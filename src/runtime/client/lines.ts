/**
 * Cuts a stream of bytes into lines, at \n bytes only: U+2028 is a legal character inside JSON text, and a character of
 * several bytes may arrive in two chunks. A line in many chunks is copied once, when it is complete.
 */
export class LineSplitter {
  #pending: Uint8Array[] = []
  #pendingBytes = 0
  readonly #maxBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that end in this chunk, without their ends. Throws when a line grows too long. */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = this.#take(chunk.subarray(start, end))
      start = end + 1
      yield line
    }
    if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start))
  }

  /** Bytes after the last \n: half a line, if the stream ends now. */
  get rest(): number {
    return this.#pendingBytes
  }

  #keep(bytes: Uint8Array) {
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes > this.#maxBytes) throw new Error(`a line is longer than ${this.#maxBytes} bytes`)
    this.#pending.push(bytes)
  }

  #take(bytes: Uint8Array): string {
    if (this.#pendingBytes === 0) return text(bytes)
    this.#keep(bytes)
    const whole = Buffer.concat(this.#pending, this.#pendingBytes)
    this.#pending = []
    this.#pendingBytes = 0
    return text(whole)
  }
}

const text = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString("utf8")
