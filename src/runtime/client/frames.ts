/**
 * Cuts a stream of bytes into frames: four bytes of length, then that many bytes. A frame in many chunks is copied once,
 * when it is complete.
 */
export class FrameSplitter {
  #pending: Uint8Array[] = []
  #pendingBytes = 0
  readonly #maxBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The frames that end in this chunk. Throws when a frame is too long. */
  *push(chunk: Uint8Array): Generator<Buffer> {
    this.#pending.push(chunk)
    this.#pendingBytes += chunk.length
    // Before the whole frame is there, putting its chunks together again and again would be quadratic.
    if (this.#pendingBytes < this.#wanted()) return
    let bytes = this.#join()
    for (let end = this.#wanted(); bytes.length >= end; end = this.#wanted()) {
      const frame = bytes.subarray(lengthBytes, end)
      bytes = bytes.subarray(end)
      this.#pending = bytes.length > 0 ? [bytes] : []
      this.#pendingBytes = bytes.length
      yield frame
    }
  }

  /** Bytes after the last frame: half a frame, if the stream ends now. */
  get rest(): number {
    return this.#pendingBytes
  }

  /** How many bytes the first frame takes, its length included. */
  #wanted(): number {
    if (this.#pendingBytes < lengthBytes) return lengthBytes
    if (this.#pending[0]!.length < lengthBytes) this.#pending = [this.#join()]
    const [first] = this.#pending
    const length = new DataView(first!.buffer, first!.byteOffset).getUint32(0)
    if (length > this.#maxBytes) throw new Error(`a frame is longer than ${this.#maxBytes} bytes`)
    return lengthBytes + length
  }

  #join(): Buffer {
    const [first] = this.#pending
    if (this.#pending.length === 1) return Buffer.from(first!.buffer, first!.byteOffset, first!.byteLength)
    return Buffer.concat(this.#pending, this.#pendingBytes)
  }
}

const lengthBytes = 4
